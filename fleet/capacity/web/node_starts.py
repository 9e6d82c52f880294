"""Start times on a node's page."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.capacity.selectors import node_starts
from fleet.capacity.selectors.node_starts import RevisionStarts
from fleet.capacity.web import board
from fleet.models import Node
from fleet.observation.domain import pod_start
from portal.accounts.models import User
from portal.core.definitions.figures import format_seconds

_MOST = 10


@dataclass(frozen=True, slots=True)
class StartRow:
    """Durations. `steps` are labels with the duration here and elsewhere, which may be empty."""

    name: str
    url: str
    here: str
    here_count: int
    elsewhere: str
    elsewhere_count: int
    steps: tuple[tuple[str, str, str], ...]


def list_rows(user: User, node: Node) -> list[StartRow]:
    return [_row(starts) for starts in node_starts.starts_on(actor=user, node=node)[:_MOST]]


def _row(starts: RevisionStarts) -> StartRow:
    elsewhere = starts.elsewhere
    return StartRow(
        name=starts.workload_name,
        url=board.deployment_url(starts.team_slug, starts.deployment),
        here=format_seconds(starts.here.seconds),
        here_count=starts.here.count,
        elsewhere=format_seconds(elsewhere.seconds) if elsewhere else "",
        elsewhere_count=elsewhere.count if elsewhere else 0,
        steps=tuple(
            (
                pod_start.LABELS[step],
                format_seconds(starts.here.steps[step]),
                format_seconds(elsewhere.steps[step]) if elsewhere else "",
            )
            for step in node_starts.STEPS
        ),
    )
