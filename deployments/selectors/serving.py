"""How a deployment answers right now, as its revisions' Tritons tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.models import Deployment
from deployments.selectors import deployments
from deployments.selectors.deployments import RevisionStatus
from fleet.domain.telemetry import ServingStats
from fleet.selectors import telemetry

WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class RevisionStats:
    number: int
    role: str
    stats: ServingStats | None


@dataclass(frozen=True, slots=True)
class DeploymentStats:
    """None is not known: no pod was read in these seconds."""

    seconds: int
    total: ServingStats | None
    revisions: list[RevisionStats]


def stats_of(deployment: Deployment, revisions: Sequence[RevisionStatus]) -> ServingStats | None:
    """Over all these revisions together. Copies to a shadow are nobody's requests: beside stable it
    does not count.
    """
    if not revisions:
        return None
    if len(revisions) > 1 and deployments.is_mirrored(deployment):
        revisions = [revision for revision in revisions if revision.role == "stable"]
    return telemetry.stats(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        names=[revision.workload_name for revision in revisions],
        seconds=WINDOW_SECONDS,
    )


def by_revision(deployment: Deployment) -> DeploymentStats:
    revisions = deployments.revisions_of(deployment)
    return DeploymentStats(
        seconds=WINDOW_SECONDS,
        total=stats_of(deployment, revisions),
        revisions=[
            RevisionStats(one.number, one.role, stats_of(deployment, [one])) for one in revisions
        ],
    )
