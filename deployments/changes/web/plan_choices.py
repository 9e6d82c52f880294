"""The plans that a canary may begin with, each with its consequence: when it ends, what it can find, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from deployments.changes.selectors import available_rollouts
from deployments.changes.services import plan_figures
from deployments.changes.services.plan_figures import PlanFigures, PlanInputs
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, RolloutTemplate
from deployments.plans.domain import baseline, descriptions, detection, presets
from deployments.plans.domain.rollout_plan import PlanKind, RolloutPlan
from deployments.plans.selectors import plans
from deployments.spec.domain.engines import LLM_ENGINES
from portal.core.definitions.figures import format_figure, format_money
from portal.ui import formats

_TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class OfferedPlan:
    """A plan by the value of its radio button. `why_off` says why it cannot be requested here."""

    value: str
    label: str
    plan: RolloutPlan
    why_off: str = ""


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """A radio button of the form, with the consequence of its plan in words."""

    value: str
    label: str
    path: str
    finish: str
    finds: str
    cost: str
    why_off: str = ""


def list_offered(deployment: Deployment, templates: Iterable[RolloutTemplate]) -> list[OfferedPlan]:
    """List the platform's plans, then those of the team."""
    has_tokens, has_fixed_replicas = count_tokens(deployment), _has_fixed_replicas(deployment)
    own = [
        OfferedPlan(
            preset.name,
            preset.label,
            preset.build_plan(has_tokens=has_tokens, has_fixed_replicas=has_fixed_replicas),
        )
        for preset in presets.PRESETS
    ]
    return own + [_offer_template(deployment, template) for template in templates]


def value_of(template: RolloutTemplate) -> str:
    return f"template-{template.pk}"


def is_template(offered: OfferedPlan) -> bool:
    return offered.value.startswith("template-")


def find_offered(offered: Sequence[OfferedPlan], value: str) -> OfferedPlan | None:
    return next((each for each in offered if each.value == value), None)


def count_tokens(deployment: Deployment) -> bool:
    """Return whether the server counts tokens, so that guards can compare them."""
    stable = deployment.stable_revision
    return stable is not None and stable.spec.get("engine") in LLM_ENGINES


def describe_choice(deployment: Deployment, offered: OfferedPlan, inputs: PlanInputs) -> PlanChoice:
    plan = offered.plan
    figures = plan_figures.compute_figures(
        deployment, plan.steps, watch_seconds=plan.watched_seconds, settings=plan, inputs=inputs
    )
    return PlanChoice(
        value=offered.value,
        label=offered.label,
        path=_describe_path(plan),
        finish=describe_finish(figures),
        finds=_describe_finds(plan, figures),
        cost=_describe_cost(plan, figures),
        why_off=offered.why_off,
    )


def describe_traffic(inputs: PlanInputs) -> str:
    """Say by which traffic the consequences are estimated."""
    rate = inputs.requests_per_second
    if rate is None:
        return "Traffic is not known now, so times are the shortest possible."
    if not rate:
        return (
            "There is no traffic now: steps wait for requests, so times are the shortest possible."
        )
    now = formats.decimals(Decimal(rate), 0 if rate >= 10 else 1)
    return (
        f"Times at the {now} requests/s of now; what a plan finds, at the traffic of the last day."
    )


def describe_finish(figures: PlanFigures) -> str:
    """Say how long the steps and the watch take at today's traffic."""
    soak = figures.soak_seconds + figures.watch_seconds
    if figures.seconds is not None:
        total = figures.seconds + figures.watch_seconds
        return f"about {descriptions.format_about(total)}" if total else "as soon as it is ready"
    least = descriptions.format_about(soak)
    if figures.requests_per_second is None:
        return f"at least {least}; today's traffic is not known"
    return f"at least {least}"


def _describe_path(plan: RolloutPlan) -> str:
    if plan.kind == PlanKind.BLUE_GREEN:
        return "0 → 100%"
    if plan.is_shadow:
        return descriptions.describe_steps(plan)
    weights = [str(step.weight) for step in plan.steps if step.weight < 100]
    return f"{' → '.join([*weights, '100'])}%"


def _describe_finds(plan: RolloutPlan, figures: PlanFigures) -> str:
    if plan.kind == PlanKind.BLUE_GREEN:
        return "Compares nothing before all traffic moves"
    found = [text for text in (_describe_errors(plan, figures), _describe_latency(figures)) if text]
    if not found:
        return "Has no guard on errors or latency"
    return f"{found[0][:1].upper()}{found[0][1:]}{''.join(f', {text}' for text in found[1:])}"


def _describe_errors(plan: RolloutPlan, figures: PlanFigures) -> str:
    if not detection.has_error_guard(plan):
        return ""
    if not figures.is_detection_known:
        return "errors: not known, as no requests were read in the last day"
    if figures.found_error_ratio is None:
        return "too little traffic to find a rise in errors"
    return f"finds errors above {format_figure(figures.found_error_ratio * 100, 2)}%"


def _describe_latency(figures: PlanFigures) -> str:
    if figures.latency is None:
        return ""
    if figures.found_slowdown is not None:
        if figures.found_slowdown >= 2:
            return f"latency {_TIMES} {format_figure(figures.found_slowdown, 2)}"
        return f"latency +{(figures.found_slowdown - 1) * 100:.0f}%"
    if figures.is_latency_too_slow:
        return "only a gross rise in latency"
    return f"slower answers after {descriptions.format_about(figures.latency.seconds)}"


def _describe_cost(plan: RolloutPlan, figures: PlanFigures) -> str:
    if figures.total_amount is None:
        return "Price of running both not known"
    least = "" if figures.seconds is not None else "at least "
    beside = ", with a baseline" if plan.has_baseline else ""
    return f"{least}+{format_money(figures.total_amount)}{beside}"


def _offer_template(deployment: Deployment, template: RolloutTemplate) -> OfferedPlan:
    plan = plans.plan_of(template)
    why_off = available_rollouts.why_not(deployment, plan.kind)
    return OfferedPlan(value_of(template), template.name, plan, why_off)


def _has_fixed_replicas(deployment: Deployment) -> bool:
    stable = deployment.stable_revision
    if stable is None:
        return False
    spec = rendering.spec_of(stable)
    return not baseline.problem_with_scaling(spec, spec)
