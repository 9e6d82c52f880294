"""Rollouts as pages and the API show them: steps, evidence, and what each button does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from deployments.guards.domain import evidence
from deployments.guards.domain.evidence import GuardResult
from deployments.models import Deployment, Rollout, RolloutEvent
from deployments.plans.domain import baseline
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.rollouts.domain.observation import RolloutProgress
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.selectors import snapshots
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.serving.selectors import revisions
from deployments.serving.selectors.deployments import OPEN_PHASES, is_current
from deployments.states import ROLLOUT, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Action, Actor
from portal.core import clock
from portal.core.errors import Forbidden, NotFound
from portal.core.single_row import find_one

_RELATED = (
    "deployment__team",
    "deployment__cluster",
    "stable_revision__version__model__team",
    "candidate_revision__version__model__team",
    "baseline_revision",
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
class RolloutSummary:
    """The data that the rollout page shows. None means not known."""

    rollout: Rollout
    plan: RolloutPlan
    steps: tuple[StepView, ...]
    requested_weight: int
    observed_weight: int | None
    # Of a shadow: the percentage that is mirrored; users get none of its answers before the end.
    is_shadow: bool
    requested_mirror: int
    observed_mirror: int | None
    observed_share: float | None
    share_low: float | None
    share_high: float | None
    stable_requests: int | None
    candidate_requests: int | None
    guards: tuple[GuardResult, ...]
    soak_left_seconds: int | None
    earliest_finish_at: datetime | None
    next_weight: int | None
    is_promotable: bool
    promotable_reason: str
    stale_metrics: str
    warming: str
    evidence_hash: str
    evidence_at: datetime | None
    can_promote: bool
    can_promote_reason: str
    can_stop: bool
    is_final: bool

    @property
    def requested_percent(self) -> int:
        """The percentage of requests that is mirrored to a shadow, else routed to the candidate."""
        return self.requested_mirror or self.requested_weight

    @property
    def observed_percent(self) -> int | None:
        return self.observed_mirror or self.observed_weight

    @property
    def compared_with(self) -> str:
        """The side whose figures stand beside the candidate's."""
        return "baseline" if self.plan.has_baseline else "stable"

    @property
    def baseline_text(self) -> str:
        """The description of the baseline, such as "r3: pods of detector:1 with 5% of requests". Empty while
        there is none.
        """
        revision = self.rollout.baseline_revision
        if revision is None or self.rollout.deployment.baseline_revision_id is None:
            return ""
        percent = baseline.share_at(self.requested_weight)
        return f"r{revision.number}: pods of {revision.version.label} with {percent}% of requests"

    @property
    def is_watched(self) -> bool:
        return bool(self.rollout.phase == RolloutPhase.WATCHING)

    @property
    def has_all_requests(self) -> bool:
        """Whether the candidate gets all requests already, so that promoting moves none."""
        return self.requested_weight == 100

    @property
    def is_last_step(self) -> bool:
        return self.rollout.step_index + 1 >= len(self.steps)

    @property
    def next_text(self) -> str:
        """The change that promoting makes, for its button. Empty when the rollout cannot be promoted."""
        if self.next_weight is None:
            return ""
        if not self.is_mirroring and self.requested_weight == self.next_weight:
            return "to stable"
        if not self.is_mirroring:
            return f"{self.requested_weight} → {self.next_weight}%"
        if self.is_last_step:
            return "to all users"
        return f"mirror {self.requested_mirror} → {self.next_weight}%"

    @property
    def is_mirroring(self) -> bool:
        """Whether requests are mirrored to it, now or soon: not when it takes over, or is gone."""
        return self.is_shadow and not self.requested_weight and not self.is_final


def current(deployment: Deployment) -> Rollout | None:
    """Return the deployment's open rollout, if any."""
    rows = Rollout.objects.filter(deployment=deployment, phase__in=OPEN_PHASES)
    rollout = rows.select_related("deployment__team", "deployment__cluster", "requested_by").first()
    if rollout is not None:
        revisions.load_onto(rollout)
    return rollout


def latest(deployment: Deployment) -> Rollout | None:
    return deployment.rollouts.select_related(*_RELATED).order_by("-id").first()


def list_visible_to(actor: Actor, *, team_slug: str | None = None) -> QuerySet[Rollout]:
    rows = Rollout.objects.filter(deployment__team__in=policy.visible_teams(actor))
    if team_slug:
        rows = rows.filter(deployment__team__slug=team_slug)
    return rows.select_related(*_RELATED)


def list_promotable_for(actor: Actor) -> list[Rollout]:
    """Return rollouts whose next step waits for a decision that this person may take."""
    running = list_visible_to(actor).filter(phase=RolloutPhase.RUNNING)
    waiting = [
        pk
        for pk, observed in running.order_by().values_list("pk", "observed")
        if StepObservation.from_json(observed).is_promotable
    ]
    rows = Rollout.objects.filter(pk__in=waiting).select_related(*_RELATED)
    return [rollout for rollout in rows if can_promote(actor, rollout)[0]]


def get_visible(*, actor: Actor, rollout_id: int) -> Rollout:
    rollout = find_one(list_visible_to(actor).filter(pk=rollout_id))
    if rollout is None:
        raise NotFound(f"There is no rollout {rollout_id}, or you are not in its team.")
    return rollout


def events_of(rollout: Rollout) -> QuerySet[RolloutEvent]:
    return RolloutEvent.objects.filter(rollout=rollout)


def observation_of(rollout: Rollout) -> StepObservation:
    return StepObservation.from_json(rollout.observed)


def evidence_of(rollout: Rollout) -> tuple[GuardResult, ...]:
    return evidence.read(rollout.evidence)


def can_promote(actor: Actor, rollout: Rollout) -> tuple[bool, str]:
    try:
        policy.require(actor, Action.PROMOTE, rollout, requester_id=rollout.requested_by_id)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    return True, ""


def view_of(*, actor: Actor, rollout: Rollout) -> RolloutSummary:
    snapshot, observed = snapshots.snapshot_of(rollout), observation_of(rollout)
    progress = snapshot.progress
    soak_left_seconds = _soak_left(snapshot.progress)
    is_final = not ROLLOUT[RolloutPhase(rollout.phase)]
    may, why_not = can_promote(actor, rollout)
    split = observed.split
    return RolloutSummary(
        rollout=rollout,
        plan=snapshot.plan,
        steps=_steps_of(snapshot, observed),
        requested_weight=_requested_weight(progress, rollout.deployment),
        observed_weight=_observed_weight(progress, rollout.deployment),
        is_shadow=snapshot.plan.is_shadow,
        requested_mirror=rollout.deployment.candidate_mirror,
        observed_mirror=rollout.deployment.observed_mirror,
        observed_share=split.observed if split else None,
        share_low=split.low if split else None,
        share_high=split.high if split else None,
        stable_requests=observed.stable_requests,
        candidate_requests=observed.candidate_requests,
        guards=evidence_of(rollout),
        soak_left_seconds=soak_left_seconds,
        earliest_finish_at=_earliest_finish(progress, soak_left_seconds),
        next_weight=_next_weight(snapshot.progress),
        is_promotable=rollout.phase == RolloutPhase.RUNNING and observed.is_promotable,
        promotable_reason=observed.reason or rollout.phase_reason,
        stale_metrics=observed.stale_metrics,
        warming="" if is_final else observed.warming,
        evidence_hash=rollout.evidence_hash,
        evidence_at=rollout.evidence_at,
        can_promote=may,
        can_promote_reason=why_not,
        can_stop=not is_final and policy.is_allowed(actor, Action.STOP, rollout),
        is_final=is_final,
    )


def _requested_weight(progress: RolloutProgress, deployment: Deployment) -> int:
    """Return the desired weight of the rollout's candidate. Once it is stable, the deployment's candidate is
    the old revision.
    """
    return 100 - deployment.candidate_weight if progress.is_swapped else deployment.candidate_weight


def _observed_weight(progress: RolloutProgress, deployment: Deployment) -> int | None:
    weight = deployment.observed_weight
    if not progress.is_swapped or weight is None:
        return weight
    # Before the swap is observed the number is that of the revisions before it.
    return 100 - weight if is_current(deployment) else None


def _steps_of(snapshot: RolloutSnapshot, observed: StepObservation) -> tuple[StepView, ...]:
    return tuple(
        StepView(index=index, state=_state_of(snapshot.progress, observed, index), **step.to_json())
        for index, step in enumerate(snapshot.plan.steps)
    )


def _state_of(progress: RolloutProgress, observed: StepObservation, index: int) -> str:
    if index < progress.step_index:
        return "done"
    if progress.phase in (RolloutPhase.PROMOTING, RolloutPhase.WATCHING, RolloutPhase.COMPLETED):
        return _state_after(progress, observed, index)
    is_running = progress.phase in (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
    return "current" if is_running and index == progress.step_index else "ahead"


def _state_after(progress: RolloutProgress, observed: StepObservation, index: int) -> str:
    """Return the state of a step once all requests go to the candidate. A full promotion leaves the present
    step, maybe before its end, and skips those behind it. The evidence is that of the decision.
    """
    if index > progress.step_index:
        return "skipped"
    return "done" if observed.has_passed else "left"


def _soak_left(progress: RolloutProgress) -> int | None:
    if progress.phase != RolloutPhase.RUNNING or progress.step_started_at is None:
        return None
    passed = (clock.now() - progress.step_started_at).total_seconds()
    return max(0, int(progress.step.soak_seconds - passed))


def _earliest_finish(progress: RolloutProgress, soak_left_seconds: int | None) -> datetime | None:
    if progress.is_watched:
        return progress.watch_until
    if soak_left_seconds is None:
        return None
    ahead = sum(step.soak_seconds for step in progress.plan.steps[progress.step_index + 1 :])
    ahead += progress.plan.watched_seconds
    return clock.now() + timedelta(seconds=soak_left_seconds + ahead)


def _next_weight(progress: RolloutProgress) -> int | None:
    """Return the weight that promoting would send to the candidate. None when it cannot be promoted."""
    return progress.next_weight if progress.phase == RolloutPhase.RUNNING else None
