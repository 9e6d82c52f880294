"""The table of those who wait for GPUs, with addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.capacity.domain.waiting import IdleHolder, Waiter, WaiterKind, WaitingRow
from fleet.capacity.web.board import deployment_url


@dataclass(frozen=True, slots=True)
class ShownHolder:
    holder: IdleHolder
    url: str


@dataclass(frozen=True, slots=True)
class ShownWait:
    """A row of the table. `url` is empty for what has no page, or none that the reader may see."""

    row: WaitingRow
    url: str
    holders: Sequence[ShownHolder]


def build(rows: Sequence[WaitingRow]) -> list[ShownWait]:
    return [
        ShownWait(
            row,
            _find_page(row.waiter),
            [
                ShownHolder(
                    one, deployment_url(one.team_slug, one.deployment) if one.is_visible else ""
                )
                for one in row.relief.holders
            ],
        )
        for row in rows
    ]


def _find_page(waiter: Waiter) -> str:
    if not waiter.is_visible or waiter.kind is WaiterKind.OTHER:
        return ""
    prefix = "batch/" if waiter.kind is WaiterKind.BATCH_JOB else ""
    return deployment_url(waiter.team_slug, f"{prefix}{waiter.name}")
