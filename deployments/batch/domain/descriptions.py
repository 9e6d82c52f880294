"""Descriptions of a batch job: its line in lists of requests, and what an approval starts."""

from __future__ import annotations

from typing import Final

from deployments.approvals.domain.requirement import Requirement
from deployments.approvals.domain.rules import DEFAULT, ApprovalProgress
from deployments.batch.domain.settings import BatchSettings
from deployments.spec.domain.placement import catalogue
from portal.core.definitions.counts import format_count

_FOUR_EYES: Final = Requirement(
    rule_id=None, rule=DEFAULT.name, role=DEFAULT.role, people=(), needed=1, why="its cost"
)
# As approvals of changes say it.
NEEDED: Final = ApprovalProgress(_FOUR_EYES, given=0).description


def title(*, version: str, name: str) -> str:
    return f"Run batch job {name} with {version}"


def details(settings: BatchSettings, *, rows: int | None) -> tuple[str, ...]:
    parts = (format_count(settings.workers, "worker"), _nodes(settings))
    return parts if rows is None else (format_count(rows, "row"), *parts)


def consequence(settings: BatchSettings, *, is_queue: bool = False) -> str:
    workers = format_count(settings.workers, "worker")
    if is_queue:
        return (
            f"Up to {workers} on {_nodes(settings)} nodes, while messages wait, for "
            f"{settings.hours:,} h."
        )
    starts = "starts" if settings.workers == 1 else "start"
    return (
        f"{workers} {starts} on {_nodes(settings)} nodes and score all rows, for at most "
        f"{settings.hours} h."
    )


def _nodes(settings: BatchSettings) -> str:
    return catalogue.qualify(settings.placement, settings.instance_type)
