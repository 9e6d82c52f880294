"""What one look at a deployment on its cluster showed, beside what was written down before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deployments.delivery.domain import health
from deployments.delivery.domain.progress import Progress
from deployments.delivery.services import deadlines
from deployments.delivery.services.observe import Observation
from deployments.delivery.services.reconcile_state import Found
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.spec.domain import replicas, serving_spec
from deployments.states import ChangeKind


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of one deployment. `refusals`: why a revision is not there, by its number."""

    deployment: Deployment
    observation: Observation
    refusals: Mapping[int, str]
    found: Found


@dataclass(frozen=True, slots=True)
class Seen:
    """One revision as seen now, and what was written down of it before."""

    revision: Revision
    progress: Progress
    weight: int | None
    mirror: int | None
    before: Mapping[str, Any]

    def to_json(self, at: datetime) -> dict[str, Any]:
        is_same = self.before.get("ready") == self.progress.is_ready
        since = self.before.get("since") if is_same else None
        return {
            **self.progress.to_json(),
            "weight": self.weight,
            "since": since or at.isoformat(),
        }


def see(look: Look, revision: Revision | None) -> Seen | None:
    if revision is None or look.deployment.is_stopped:
        return None
    wanted = serving_spec.stored(revision.spec)
    spec = replicas.scaled(wanted, number=revision.number, scale=look.deployment.scale)
    found = look.observation.progress_of(revision, spec)
    if revision.number in look.refusals:
        words = look.refusals[revision.number]
        found = Progress(found.stage, "refused", words, is_failing=True)
    return Seen(
        revision=revision,
        progress=found,
        weight=look.observation.weight_of(look.deployment, revision),
        mirror=look.observation.mirror_of(look.deployment, revision),
        before=look.deployment.observed.get(f"r{revision.number}", {}),
    )


def share(deployment: Deployment, seen: int | None) -> int | None:
    """Without a route nothing reaches the candidate of a stopped deployment, so its drain may end."""
    if deployment.is_stopped:
        return 0 if deployment.candidate_revision_id is not None else None
    return seen


def facts(
    look: Look,
    stable: Seen | None,
    candidate: Seen | None,
    change: ChangeRequest | None,
    at: datetime,
) -> health.Facts:
    deployment, seen = look.deployment, look.observation
    is_moving = change is not None and change.kind in (ChangeKind.SCALE, ChangeKind.START)
    return health.Facts(
        stable=stable.progress if stable else None,
        candidate=candidate.progress if candidate else None,
        route_problem=look.observation.route_problem,
        # More replicas coming up are no harm to those that serve, and a start begins anew.
        was_ready=deployment.first_ready_at is not None and not is_moving,
        is_late=deadlines.is_late(deployment, at),
        is_retiring=deployment.is_retiring,
        is_stopped=deployment.is_stopped,
        leftovers=len(seen.workloads) + sum(len(pods) for pods in seen.pods.values()),
    )
