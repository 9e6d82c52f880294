"""config.pbtxt beside the fields of a new deployment: each follows the other.

The fields are what is requested. A text that was edited since it was shown is read into them; while
it cannot be read it stays as it was typed, and the form does not go on without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.changes.web import request_body
from deployments.changes.web.draft import Draft
from deployments.registry.domain import signatures, triton_config
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import ConfigProblem
from deployments.spec.domain.engines import ONNX_ENGINES
from deployments.spec.domain.model_settings import ModelSettings
from portal.core.definitions import Rejected

TEXT: Final = "config_pbtxt"
SHOWN: Final = "config_shown"


@dataclass(frozen=True, slots=True)
class ConfigText:
    """The text of config.pbtxt beside the form. `changes` are the fields that an edited text sets; `notes` do not
    block.

    `is_refused` means that an edited text cannot be read; other problems are of the fields.
    """

    text: str
    problems: Sequence[ConfigProblem] = ()
    notes: Sequence[ConfigProblem] = ()
    changes: Mapping[str, str] | None = None
    is_refused: bool = False

    @property
    def shown(self) -> str:
        """The digest that tells an edited text from the one that was shown. Empty for a refused text, which counts
        as edited.
        """
        return "" if self.is_refused else digest(self.text)

    @property
    def rows(self) -> int:
        return min(max(self.text.count("\n") + 2, 14), 40)


def build_for_draft(draft: Draft, posted: Mapping[str, Any]) -> ConfigText | None:
    """Return config.pbtxt for the draft, with its problems.

    None if the engine or the version has no config.pbtxt with these settings.
    """
    signature = _signature_of(draft)
    if signature is None or draft.version is None:
        return None
    model = draft.version.model.name
    typed = _normal(str(posted.get(TEXT, "")))
    if typed and posted.get(SHOWN) != digest(typed):
        return _read(typed, model, signature, draft.data)
    try:
        settings = settings_in(draft.data)
    except Rejected as error:
        problems = [
            ConfigProblem(f"{_label(path)}:", fix, setting=path)
            for path, fix in error.fields.items()
        ]
        return ConfigText(typed or triton_config.render(model=model, signature=signature), problems)
    return _write(model, signature, settings)


def digest(text: str) -> str:
    return hashlib.sha256(_normal(text).encode()).hexdigest()[:16]


def settings_in(data: Mapping[str, str]) -> ModelSettings:
    """Return the settings of config.pbtxt among the form's fields. Raises Rejected."""
    spec = request_body.spec_of(data)
    return ModelSettings.from_json(
        {name: spec[name] for name in ModelSettings.model_fields if name in spec}
    )


def fields_of(settings: ModelSettings) -> dict[str, str]:
    """Return the form's fields with these settings; what is not set has its default."""
    tops = tuple(ModelSettings.model_fields)
    texts = {
        setting.name: setting.default
        for setting in request_body.SETTINGS.values()
        if setting.path.partition(".")[0] in tops
    }
    values = settings.model_dump(mode="json")
    return texts | request_body.clear_defaults(request_body.texts_of(values))


def _read(typed: str, model: str, signature: Signature, data: Mapping[str, str]) -> ConfigText:
    try:
        base = settings_in(data)
    except Rejected:
        base = ModelSettings()
    reading = triton_config.read(typed, model=model, signature=signature, base=base)
    if reading.settings is None:
        return ConfigText(typed, reading.blocking, is_refused=True)
    written = _write(model, signature, reading.settings)
    notes = [*reading.problems, *written.notes]
    return ConfigText(written.text, (), notes, fields_of(reading.settings))


def _write(model: str, signature: Signature, settings: ModelSettings) -> ConfigText:
    text = triton_config.render(model=model, signature=signature, spec=settings)
    notes = [
        *triton_config.problems_with(signature, settings),
        *triton_config.warnings_of(signature, settings),
    ]
    return ConfigText(text, (), notes)


def _signature_of(draft: Draft) -> Signature | None:
    version = draft.version
    if version is None or draft.data.get("engine") not in ONNX_ENGINES:
        return None
    signature = signatures.from_json(version.signature)
    return signature if signature.inputs else None


def _label(path: str) -> str:
    definition = request_body.DEFINITIONS.get(path)
    return definition.label if definition else path


def _normal(text: str) -> str:
    """Normalize line ends: browsers send a textarea with others than it was shown with."""
    return text.replace("\r\n", "\n").strip()
