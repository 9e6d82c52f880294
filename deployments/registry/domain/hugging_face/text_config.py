"""Find the language part of config.json, with the defaults of its class for what the file leaves out.

The classes are those of Transformers and vLLM (known_models.py). A part of a known class has its own defaults: what the
file states above it belongs to the whole model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.registry.domain.hugging_face import known_models
from deployments.registry.domain.hugging_face.known_models import ConfigClass

_NESTED: Final = (
    ("text_config",),
    ("llm_config",),
    ("language_config",),
    ("thinker_config", "text_config"),
)
_UNKNOWN: Final = ConfigClass()


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The configuration of the language part. `values` have the names of the class. A value that the file
    states as null stays null.
    """

    model_type: str
    values: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """Return the value of a canonical name, which the class may store under another one."""
        value = self.values.get(self.names.get(name, name))
        return self.values.get(name) if value is None else value


def find(data: Mapping[str, Any], architecture: str) -> TextConfig:
    model_type = _type_of(data) or known_models.type_of(architecture)
    whole = known_models.config_class(model_type) or _UNKNOWN
    paths = [whole.text] if whole.text else []
    part = next((p for path in (*paths, *_NESTED) if (p := _part(data, path)) is not None), None)
    text_type = (_type_of(part) if part else "") or whole.text_type
    if part is not None and not text_type:
        text_type = known_models.type_of(_first_architecture(part))
    text_type = text_type or ("" if part is not None else model_type)
    own = known_models.config_class(text_type)
    if own is None:
        return TextConfig(text_type, {**data, **(part or {})})
    # Flat files of multi-modal models have the values of the language part at the top.
    stated = data if part is None else part
    return TextConfig(text_type, {**own.defaults, **stated}, own.names)


def is_class_known(data: Mapping[str, Any], architecture: str) -> bool:
    model_type = _type_of(data) or known_models.type_of(architecture)
    return known_models.config_class(model_type) is not None


def _part(data: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    found: Any = data
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _type_of(data: Mapping[str, Any]) -> str:
    model_type = data.get("model_type")
    return model_type if isinstance(model_type, str) else ""


def _first_architecture(data: Mapping[str, Any]) -> str:
    names = data.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
