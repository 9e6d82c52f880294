"""The buttons of a running rollout, in the header of every tab of its deployment."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from deployments.models import Rollout
from deployments.rollouts.selectors.rollouts import RolloutSummary
from deployments.rollouts.web import activity
from deployments.states import RolloutPhase


@dataclass(frozen=True, slots=True)
class RolloutButtons:
    """The buttons of a rollout. `no_promotion` says why promoting rests now; it is empty when it works. A
    button that this person may never press is left out.
    """

    url: str
    evidence_hash: str
    can_promote: bool
    next_text: str
    no_promotion: str
    can_pause: bool
    can_unpause: bool
    can_abort: bool
    # After promotion, while the old revision is still warm.
    can_finish: bool
    is_watched: bool


def buttons_of(rollout: Rollout, view: RolloutSummary) -> RolloutButtons | None:
    """Return the buttons of the rollout. None when there is nothing that this person could do about it."""
    if view.is_final or not (view.can_promote or view.can_stop):
        return None
    phase, deployment = RolloutPhase(rollout.phase), rollout.deployment
    return RolloutButtons(
        url=reverse("rollout", args=(deployment.team.slug, deployment.name)),
        evidence_hash=view.evidence_hash,
        can_promote=view.can_promote and bool(view.steps) and not view.is_watched,
        next_text=view.next_text,
        no_promotion=activity.why_no_promotion(rollout, view),
        can_pause=view.can_stop and phase in (RolloutPhase.PREPARING, RolloutPhase.RUNNING),
        can_unpause=view.can_stop and phase == RolloutPhase.PAUSED,
        can_abort=view.can_stop and phase != RolloutPhase.ABORTING,
        can_finish=view.can_promote and view.is_watched,
        is_watched=view.is_watched,
    )
