"""Convert between a config.pbtxt and settings, checked against a version's signature. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.models import ModelVersion
from deployments.registry.domain import signatures, triton_config
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import ConfigProblem
from deployments.spec.domain.model_settings import ModelSettings
from portal.core.errors import Invalid


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted config.pbtxt. `text` is what a deployment with the settings has; without settings, what was
    sent.
    """

    text: str
    settings: ModelSettings | None
    rest: str
    problems: Sequence[ConfigProblem]


def read_text(version: ModelVersion, text: str, base: ModelSettings) -> Conversion:
    """Convert a config.pbtxt to settings. `base` has the settings that a text cannot state."""
    signature, model = _signature_of(version), version.model.name
    reading = triton_config.read(text, model=model, signature=signature, base=base)
    if reading.settings is None:
        return Conversion(text, None, reading.rest, reading.problems)
    written = write_settings(version, reading.settings)
    problems = [*reading.problems, *written.problems]
    return Conversion(written.text, reading.settings, reading.rest, problems)


def write_settings(version: ModelVersion, settings: ModelSettings) -> Conversion:
    signature = _signature_of(version)
    text = triton_config.render(model=version.model.name, signature=signature, spec=settings)
    problems = [
        *triton_config.problems_with(signature, settings),
        *triton_config.warnings_of(signature, settings),
    ]
    return Conversion(text, settings, "", problems)


def _signature_of(version: ModelVersion) -> Signature:
    signature = signatures.from_json(version.signature)
    if not signature.inputs:
        raise Invalid(
            f"The inputs and outputs of {version.label} are not known, so it has no config.pbtxt."
        )
    return signature
