"""The earliest finish and the cost of a rollout plan, before it is requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from deployments import rejections
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.manifests.selectors import baselines, rendering
from deployments.models import Deployment
from deployments.plans.domain import candidate_replicas, descriptions, detection, rollout_plan
from deployments.plans.domain.detection import Detection, ExpectedTraffic, LatencyDetection
from deployments.plans.domain.rollout_plan import PlanSettings, RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.preflight.services import cost
from deployments.serving.selectors import block_lengths, deployments, statistics
from deployments.spec.domain import replicas
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind
from fleet.capacity.selectors import capacity
from fleet.gpus.domain.offers import GpuShare
from fleet.telemetry.selectors import daily
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.definitions.figures import format_seconds
from portal.core.errors import Conflict


@dataclass(frozen=True, slots=True)
class StepFigure:
    """The figures of a step. `seconds` is None if it needs requests and the request rate is zero or not known.

    `replicas` are those of the candidate; `detection` is what the step detects in its time, None for nothing.
    """

    weight: int
    seconds: int | None
    waiting_for: str
    replicas: int = 1
    detection: Detection | None = None

    @property
    def duration(self) -> str:
        """The time of the step in words: rounded where it is estimated from the traffic."""
        if self.waiting_for == "requests":
            return format_seconds(self.seconds or 0)
        return descriptions.format_duration(self.seconds or 0)

    @property
    def found_within(self) -> str:
        """The time until `detection` is found, in words. Empty without one."""
        return format_seconds(self.detection.seconds) if self.detection else ""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of the figures of any plan of a deployment, read once for all plans of a page.

    `day` is the traffic of the last day, `spec` that of the stable revision; None without one.
    """

    requests_per_second: float | None
    mean_latency_ms: float | None
    day: ExpectedTraffic | None
    lengths: BlockLengths
    spec: ServingSpec | None
    shares: tuple[GpuShare, ...]

    @property
    def per_hour_amount(self) -> Decimal | None:
        """The dollars of the stable revision in an hour. None if its price is not known."""
        return None if self.spec is None else _price_of(self.shares, self.spec)


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The figures of a plan. Dollars are those of the candidate: the stable revision costs the same without a
    rollout.

    `soak_seconds` is the minimum duration of the steps; `seconds` also counts the time in which current traffic
    brings each step its requests, None if that is not known.

    After promotion the old revision runs on for `watch_seconds`, which costs `watch_amount`. All of it is in the
    total.
    """

    steps: tuple[StepFigure, ...]
    soak_seconds: int
    seconds: int | None
    earliest_at: datetime
    per_hour_amount: Decimal | None
    total_amount: Decimal | None
    requests_per_second: float | None
    watch_seconds: int = 0
    watch_amount: Decimal | None = None
    # The most that the baseline costs in an hour, included in the amounts above; None without one, or
    # without a price.
    baseline_per_hour_amount: Decimal | None = None
    # Whether there was traffic in the last day by which `detection` is known.
    is_detection_known: bool = False
    # None: no guard compares a time with stable's.
    latency: LatencyDetection | None = None
    # The lowest error ratio, and the smallest multiple of stable's mean latency, that any step finds. None if it
    # finds none, or if that is not known.
    found_error_ratio: float | None = None
    found_slowdown: float | None = None

    @property
    def latency_block(self) -> str:
        return format_seconds(self.latency.block_seconds) if self.latency else ""

    @property
    def latency_found_after(self) -> str:
        return format_seconds(self.latency.seconds) if self.latency else ""

    @property
    def is_latency_too_slow(self) -> bool:
        """Whether the steps end before any but a gross rise in latency shows."""
        return self.latency is not None and self.latency.seconds > (
            self.seconds or self.soak_seconds
        )

    @property
    def watch_duration(self) -> str:
        return descriptions.format_duration(self.watch_seconds)


def preview(
    *,
    actor: User,
    deployment_id: int,
    steps: Sequence[dict[str, Any]],
    plan: Mapping[str, Any] | None = None,
) -> PlanFigures:
    """Compute the time and cost of a plan as a request would take it. Nothing is written."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.stable_revision is None:
        raise Conflict(
            f"{deployment} has no stable revision to compare with yet.", code="not_serving"
        )
    with rejections.as_invalid():
        checked = rollout_plan.check(plan or {}, list(steps))
    return compute_figures(
        deployment, checked.steps, watch_seconds=checked.watched_seconds, settings=checked
    )


def overlap_seconds(deployment: Deployment, kind: str, plan: RolloutPlan | None) -> int:
    """Return how long both revisions run during a rollout: as long as its steps and its watch take.

    A revision that takes over at once adds nothing.
    """
    if kind != ChangeKind.CANARY or deployment.stable_revision is None or plan is None:
        return 0
    stats = statistics.stats_of(deployment, deployments.revisions_of(deployment))
    rate = stats.requests_per_second if stats else None
    figures = [_step(step, rate) for step in plan.steps]
    soak = sum(step.soak_seconds for step in plan.steps)
    steps = max(soak, sum(figure.seconds or 0 for figure in figures))
    return steps + plan.watched_seconds


def compute_figures(
    deployment: Deployment,
    steps: Sequence[Step],
    *,
    watch_seconds: int,
    settings: PlanSettings | None = None,
    inputs: PlanInputs | None = None,
) -> PlanFigures:
    """Compute the figures of steps for a candidate with the serving spec of the stable revision, which must exist.

    `settings` is None if they are not readable yet; what the steps detect is then not known. `inputs` None reads them.
    """
    inputs = inputs or read_inputs(deployment)
    rate, lengths = inputs.requests_per_second, inputs.lengths
    traffic = inputs.day if settings and detection.has_error_guard(settings) else None
    figures = tuple(
        replace(
            _step(step, rate),
            replicas=_replicas(deployment, step, settings),
            detection=_detection(step, settings, traffic, lengths.errors),
        )
        for step in steps
    )
    known = [figure.seconds for figure in figures if figure.seconds is not None]
    seconds = sum(known) if len(known) == len(figures) else None
    soak = sum(step.soak_seconds for step in steps)
    of_stable = inputs.per_hour_amount
    of_baseline = _baseline_per_hour(deployment, steps, settings, inputs)
    hourly = None if of_stable is None else of_stable + (of_baseline or 0)
    least = (soak if seconds is None else seconds) + watch_seconds
    # The baseline is removed before the watch begins.
    while_watched = None if of_stable is None else of_stable * Decimal(watch_seconds) / 3600
    total = None if hourly is None else hourly * Decimal(least - watch_seconds) / 3600
    return PlanFigures(
        steps=figures,
        soak_seconds=soak,
        seconds=seconds,
        earliest_at=clock.now() + timedelta(seconds=least),
        per_hour_amount=hourly,
        total_amount=None if total is None or while_watched is None else total + while_watched,
        requests_per_second=rate,
        watch_seconds=watch_seconds,
        watch_amount=while_watched,
        baseline_per_hour_amount=of_baseline,
        is_detection_known=traffic is not None,
        latency=_latency(settings, lengths, steps, rate),
        found_error_ratio=_lowest_error_ratio(figures, traffic),
        found_slowdown=_slowdown(settings, figures, steps, inputs),
    )


def read_inputs(deployment: Deployment) -> PlanInputs:
    """Read what the figures of the deployment's plans follow from."""
    stable = deployment.stable_revision
    spec = None if stable is None else rendering.spec_of(stable)
    revisions = deployments.revisions_of(deployment)
    stats = statistics.stats_of(deployment, revisions)
    return PlanInputs(
        requests_per_second=stats.requests_per_second if stats else None,
        mean_latency_ms=stats.mean_latency_ms if stats else None,
        day=_last_day(deployment, [revision.workload_name for revision in revisions]),
        # Those that a rollout beginning now would take.
        lengths=BlockLengths() if stable is None else block_lengths.before(stable, clock.now()),
        spec=spec,
        shares=() if spec is None else _list_shares(deployment, spec),
    )


def watch_cost(deployment: Deployment, plan: RolloutPlan) -> Decimal | None:
    """Return the dollars of the old revision while the new one is watched. None if the price is not known."""
    hourly = _per_hour(deployment)
    return None if hourly is None else hourly * Decimal(plan.watched_seconds) / 3600


def _step(step: Step, rate: float | None) -> StepFigure:
    soak, needed, weight = step.soak_seconds, step.min_requests, step.weight
    if not needed:
        return StepFigure(weight, soak, "soak" if soak else "")
    if rate is None:
        return StepFigure(weight, None, "requests (request rate not known)")
    if rate * weight == 0:
        return StepFigure(weight, None, "requests (no traffic now)")
    seconds = int(needed / (rate * weight / 100)) + 1
    return StepFigure(weight, max(soak, seconds), "requests" if seconds > soak else "soak")


def _replicas(deployment: Deployment, step: Step, settings: PlanSettings | None) -> int:
    """Return the candidate's replicas at the step, if it has the spec of stable."""
    stable = deployment.stable_revision
    if stable is None:
        return 1
    size = replicas.least_of(stable.spec, number=stable.number, scale=deployment.scale)
    return candidate_replicas.at_weight(
        step.weight,
        stable=size,
        approved=size,
        is_mirrored=settings is not None and settings.is_shadow,
        has_baseline=settings is not None and settings.has_baseline,
    )


def _detection(
    step: Step,
    settings: PlanSettings | None,
    traffic: ExpectedTraffic | None,
    block_seconds: float,
) -> Detection | None:
    """Return what the step detects in its duration with the traffic of the last day. None if settings or traffic
    are not known.
    """
    if settings is None or traffic is None:
        return None
    seconds = _step(step, traffic.per_second).seconds
    return detection.estimate_step(
        settings,
        traffic,
        weight=step.weight,
        seconds=seconds or 0,
        block_seconds=block_seconds,
    )


def _latency(
    settings: PlanSettings | None, lengths: BlockLengths, steps: Sequence[Step], rate: float | None
) -> LatencyDetection | None:
    if settings is None:
        return None
    weights = [step.weight for step in steps]
    return detection.estimate_latency(settings, lengths, weights=weights, per_second=rate)


def _lowest_error_ratio(
    figures: Sequence[StepFigure], traffic: ExpectedTraffic | None
) -> float | None:
    """Return the lowest error ratio of a candidate that any of the steps finds."""
    times = [figure.detection.times for figure in figures if figure.detection]
    return min(1.0, min(times) * traffic.error_ratio) if times and traffic else None


def _slowdown(
    settings: PlanSettings | None,
    figures: Sequence[StepFigure],
    steps: Sequence[Step],
    inputs: PlanInputs,
) -> float | None:
    if settings is None:
        return None
    expected = [
        detection.ExpectedStep(
            step.weight, step.soak_seconds if figure.seconds is None else figure.seconds
        )
        for step, figure in zip(steps, figures, strict=True)
    ]
    return detection.estimate_slowdown(
        settings,
        inputs.lengths,
        steps=expected,
        per_second=inputs.requests_per_second,
        mean_ms=inputs.mean_latency_ms,
    )


def _last_day(deployment: Deployment, names: list[str]) -> ExpectedTraffic | None:
    day = daily.last_day(
        cluster_id=deployment.cluster_id, namespace=deployment.namespace, names=names
    )
    return None if day is None else ExpectedTraffic(day.per_second, day.requests, day.failures)


def _baseline_per_hour(
    deployment: Deployment,
    steps: Sequence[Step],
    settings: PlanSettings | None,
    inputs: PlanInputs,
) -> Decimal | None:
    if settings is None or not settings.has_baseline or inputs.spec is None:
        return None
    plan = RolloutPlan.model_construct(**dict(settings)).with_steps(tuple(steps))
    spec = baselines.spec_of(deployment, plan, inputs.spec)
    return None if spec is None else _price_of(inputs.shares, spec)


def _per_hour(deployment: Deployment) -> Decimal | None:
    if deployment.stable_revision is None:
        return None
    spec = rendering.spec_of(deployment.stable_revision)
    return _price_of(_list_shares(deployment, spec), spec)


def _price_of(shares: Sequence[GpuShare], spec: ServingSpec) -> Decimal | None:
    """Return the dollars of all replicas in an hour. None if the price is not known."""
    share = cost.find_gpu_share(shares, spec)
    each = share.usd_per_hour_amount if share else None
    return None if each is None else each * spec.floor_replicas * spec.nodes


def _list_shares(deployment: Deployment, spec: ServingSpec) -> tuple[GpuShare, ...]:
    return tuple(
        capacity.list_shares(cluster_id=deployment.cluster_id, instance_types=spec.instance_types)
    )
