"""The cluster of a team's deployments does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="cluster_unreachable",
    label="Cluster unreachable",
    advice="Traffic keeps its last weights. A platform admin tests the connection under Admin, Clusters.",
)
AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    is_reachable: bool | None
    last_seen_at: datetime | None
    error: str


def decide(facts: ClusterFacts, at: datetime) -> AlertVerdict:
    if facts.is_reachable is None:
        return AlertVerdict(None)
    if facts.is_reachable:
        return AlertVerdict(is_firing=False)
    if facts.last_seen_at is not None and at - facts.last_seen_at < AFTER:
        return AlertVerdict(None)
    reason = f": {facts.error}" if facts.error else ""
    return AlertVerdict(
        is_firing=True, message=f"It has not answered for 5 minutes{reason}.".replace("..", ".")
    )
