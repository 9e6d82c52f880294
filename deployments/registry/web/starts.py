"""Start times as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.models import ModelVersion
from deployments.registry.selectors import starts
from deployments.registry.selectors.starts import UsualStart
from deployments.spec.domain.serving_spec import ServingSpec, Storage
from fleet.observation.domain import pod_start
from portal.core import definitions
from portal.ui import formats


@dataclass(frozen=True, slots=True)
class StartRow:
    """`steps` are labels with durations, in the order in which a pod takes them."""

    engine: str
    model_cache: str
    instance_type: str
    starts: int
    duration: str
    steps: tuple[tuple[str, str], ...]


def rows_of(version: ModelVersion) -> list[StartRow]:
    return [_row(usual) for usual in starts.usual_starts(version)]


def describe(usual: UsualStart) -> str:
    plural = "" if usual.starts == 1 else "s"
    return (
        f"Typical start: {formats.duration(usual.seconds)} on {usual.instance_type} "
        f"({usual.starts} start{plural})"
    )


def _row(usual: UsualStart) -> StartRow:
    engines = definitions.fields_of(ServingSpec)["engine"].choices
    caches = definitions.fields_of(Storage)["model_cache"].choices
    return StartRow(
        engine=engines.get(usual.engine, usual.engine),
        model_cache="" if usual.model_cache == "none" else caches[usual.model_cache],
        instance_type=usual.instance_type,
        starts=usual.starts,
        duration=formats.duration(usual.seconds),
        steps=tuple(
            (label, formats.duration(usual.steps[step])) for step, label in pod_start.LABELS.items()
        ),
    )
