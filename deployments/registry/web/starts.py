"""Start times as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.registry.selectors import starts
from deployments.registry.selectors.served_revisions import ServedRevisions
from deployments.registry.selectors.starts import TypicalStart
from deployments.spec.domain.serving_spec import ServingSpec, Storage
from fleet.observation.domain import pod_start
from portal.core import definitions
from portal.core.definitions.figures import format_seconds


@dataclass(frozen=True, slots=True)
class StartRow:
    """A row of start times. `steps` are labels with durations, in the order in which a pod takes them."""

    engine: str
    model_cache: str
    instance_type: str
    starts: int
    duration: str
    steps: tuple[tuple[str, str], ...]


def rows_of(served: ServedRevisions) -> list[StartRow]:
    return [_row(typical) for typical in starts.typical_starts(served)]


def describe(typical: TypicalStart) -> str:
    plural = "" if typical.starts == 1 else "s"
    return (
        f"Typical start: {format_seconds(typical.seconds)} on {typical.instance_type} "
        f"({typical.starts} start{plural})"
    )


def _row(typical: TypicalStart) -> StartRow:
    engines = definitions.fields_of(ServingSpec)["engine"].choices
    caches = definitions.fields_of(Storage)["model_cache"].choices
    return StartRow(
        engine=engines.get(typical.engine, typical.engine),
        model_cache="" if typical.model_cache == "none" else caches[typical.model_cache],
        instance_type=typical.instance_type,
        starts=typical.starts,
        duration=format_seconds(typical.seconds),
        steps=tuple(
            (label, format_seconds(typical.steps[step])) for step, label in pod_start.LABELS.items()
        ),
    )
