"""Reading rollouts: the ladder of steps, the evidence, and what each button would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from deployments.guards.domain import evidence
from deployments.models import Deployment, Rollout, RolloutEvent
from deployments.plans.domain import rollout_plan
from deployments.plans.selectors import auto_promotion
from deployments.serving.selectors.deployments import OPEN_PHASES
from deployments.states import ROLLOUT, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Action, Actor
from portal.core import clock
from portal.core.errors import Forbidden, NotFound

_RELATED = (
    "deployment__team",
    "deployment__cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
    "requested_by",
)


@dataclass(frozen=True, slots=True)
class StepView:
    index: int
    weight: int
    soak_seconds: int
    min_requests: int
    auto_promote: bool
    deadline_seconds: int | None
    # "done", "current" or "ahead"; "left" before its end, or "skipped" altogether
    state: str


@dataclass(frozen=True, slots=True)
class RolloutView:
    """All that the rollout page shows. Numbers that are not known are None."""

    rollout: Rollout
    steps: tuple[StepView, ...]
    requested_weight: int
    observed_weight: int | None
    # Of a shadow: copies in percent; its weight is what users get of it, nothing until the end.
    is_shadow: bool
    requested_mirror: int
    observed_mirror: int | None
    observed_share: float | None
    share_low: float | None
    share_high: float | None
    stable_requests: int | None
    candidate_requests: int | None
    guards: tuple[evidence.Guard, ...]
    soak_left_seconds: int | None
    earliest_finish_at: datetime | None
    next_weight: int | None
    is_promotable: bool
    promotable_reason: str
    evidence_hash: str
    evidence_at: datetime | None
    may_promote: bool
    may_promote_reason: str
    may_stop: bool
    is_final: bool

    @property
    def requested_percent(self) -> int:
        """Of the requests, as the present step asks: copied to a shadow, else sent."""
        return self.requested_mirror or self.requested_weight

    @property
    def observed_percent(self) -> int | None:
        return self.observed_mirror or self.observed_weight

    @property
    def is_last_step(self) -> bool:
        return self.rollout.step_index + 1 >= len(self.steps)

    @property
    def next_words(self) -> str:
        """What promoting changes, for its button."""
        if self.next_weight is None:
            return ""
        if not self.is_mirroring:
            return f"{self.requested_weight} → {self.next_weight}%"
        if self.is_last_step:
            return "to all users"
        return f"mirror {self.requested_mirror} → {self.next_weight}%"

    @property
    def is_mirroring(self) -> bool:
        """Whether copies go to it, or are about to: not when it takes over, or is gone."""
        return self.is_shadow and not self.requested_weight and not self.is_final


def current(deployment: Deployment) -> Rollout | None:
    """The deployment's open rollout, if any."""
    rows = Rollout.objects.filter(deployment=deployment, phase__in=OPEN_PHASES)
    return rows.select_related(*_RELATED).first()


def latest(deployment: Deployment) -> Rollout | None:
    rows = Rollout.objects.filter(deployment=deployment)
    return rows.select_related(*_RELATED).order_by("-id").first()


def list_visible_to(actor: Actor, *, team_slug: str | None = None) -> QuerySet[Rollout]:
    rows = Rollout.objects.filter(deployment__team__in=policy.visible_teams(actor))
    if team_slug:
        rows = rows.filter(deployment__team__slug=team_slug)
    return rows.select_related(*_RELATED)


def list_promotable_for(actor: Actor) -> list[Rollout]:
    """Rollouts whose next step waits for a decision that this person may take."""
    rows = list_visible_to(actor).filter(phase=RolloutPhase.RUNNING)
    return [row for row in rows if row.observed.get("is_promotable") and may_promote(actor, row)[0]]


def get_visible(*, actor: Actor, rollout_id: int) -> Rollout:
    found = list_visible_to(actor).filter(pk=rollout_id).first()
    if found is None:
        raise NotFound(f"There is no rollout {rollout_id}, or you are not in its team.")
    return found


def events_of(rollout: Rollout) -> QuerySet[RolloutEvent]:
    return RolloutEvent.objects.filter(rollout=rollout)


def is_shadow(rollout: Rollout) -> bool:
    return rollout_plan.is_shadow(rollout.plan)


def may_promote(actor: Actor, rollout: Rollout) -> tuple[bool, str]:
    try:
        policy.require(actor, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    return True, ""


def view_of(*, actor: Actor, rollout: Rollout) -> RolloutView:
    seen = rollout.observed
    is_final = not ROLLOUT[RolloutPhase(rollout.phase)]
    may, why_not = may_promote(actor, rollout)
    share = seen.get("share", {})
    return RolloutView(
        rollout=rollout,
        steps=_steps_of(rollout),
        requested_weight=rollout.deployment.candidate_weight,
        observed_weight=rollout.deployment.observed_weight,
        is_shadow=is_shadow(rollout),
        requested_mirror=rollout.deployment.candidate_mirror,
        observed_mirror=rollout.deployment.observed_mirror,
        observed_share=share.get("observed"),
        share_low=share.get("low"),
        share_high=share.get("high"),
        stable_requests=seen.get("stable_requests"),
        candidate_requests=seen.get("candidate_requests"),
        guards=tuple(evidence.Guard(**line) for line in rollout.evidence),
        soak_left_seconds=_soak_left(rollout),
        earliest_finish_at=_earliest_finish(rollout),
        next_weight=_next_weight(rollout),
        is_promotable=rollout.phase == RolloutPhase.RUNNING and bool(seen.get("is_promotable")),
        promotable_reason=seen.get("why", rollout.phase_reason),
        evidence_hash=rollout.evidence_hash,
        evidence_at=rollout.evidence_at,
        may_promote=may,
        may_promote_reason=why_not,
        may_stop=not is_final and policy.is_allowed(actor, Action.STOP, rollout),
        is_final=is_final,
    )


def _steps_of(rollout: Rollout) -> tuple[StepView, ...]:
    has_moved_on = rollout.phase in (RolloutPhase.PROMOTING, RolloutPhase.COMPLETED)

    def state(index: int) -> str:
        if index < rollout.step_index:
            return "done"
        if has_moved_on:
            return _state_after(rollout, index)
        is_running = rollout.phase in (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
        return "current" if is_running and index == rollout.step_index else "ahead"

    return tuple(
        StepView(index=index, state=state(index), **step.to_json())
        for index, step in enumerate(auto_promotion.steps_of(rollout))
    )


def _state_after(rollout: Rollout, index: int) -> str:
    """Of a step once all requests go to the candidate: who promotes fully leaves the present step,
    maybe before its end, and those behind it never run. The evidence is that of the decision.
    """
    if index > rollout.step_index:
        return "skipped"
    return "done" if rollout.observed.get("is_promotable") else "left"


def _soak_left(rollout: Rollout) -> int | None:
    if rollout.phase != RolloutPhase.RUNNING or rollout.step_started_at is None:
        return None
    soak = rollout.steps[rollout.step_index]["soak_seconds"]
    gone = (clock.now() - rollout.step_started_at).total_seconds()
    return max(0, int(soak - gone))


def _earliest_finish(rollout: Rollout) -> datetime | None:
    left = _soak_left(rollout)
    if left is None:
        return None
    ahead = sum(step["soak_seconds"] for step in rollout.steps[rollout.step_index + 1 :])
    return clock.now() + timedelta(seconds=left + ahead)


def _next_weight(rollout: Rollout) -> int | None:
    """What promoting would send to the candidate; None when it cannot be promoted."""
    if rollout.phase != RolloutPhase.RUNNING:
        return None
    ahead = rollout.steps[rollout.step_index + 1 :]
    return ahead[0]["weight"] if ahead else 100
