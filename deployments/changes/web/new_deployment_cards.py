"""Cards of the new-deployment page: choices, side card, review."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms

from deployments.changes.web.form import Choices, DeployForm
from deployments.changes.web.gpu_choice import value_of
from deployments.models import ModelVersion
from deployments.plans.domain.descriptions import format_duration
from deployments.preflight.domain.checks import Check, Cost, DeployDraft, Preflight
from deployments.preflight.services import preflight
from deployments.registry.domain import external_weights
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.declared_size import DeclaredSize
from deployments.sizing.domain.ranking import Advice
from deployments.sizing.selectors import measurements
from deployments.states import Environment
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH
from portal.accounts.models import User
from portal.core import clock
from portal.core.definitions import Rejected
from portal.core.definitions.figures import format_money
from portal.core.errors import DomainError
from portal.ui.definition_fields import ON


@dataclass(frozen=True, slots=True)
class CostFact:
    label: str
    amount: Decimal | None
    unit: str = ""
    # On the cheapest of several instance types; `amount` is then that of the dearest.
    low: Decimal | None = None


@dataclass(frozen=True, slots=True)
class CostCard:
    facts: Sequence[CostFact]
    budget: Decimal | None
    spent: Decimal | None
    spent_percent: float | None
    month_percent: float
    month: str
    tone: str
    forecast: str
    # At max replicas.
    max_per_hour: Decimal | None = None
    # A month at min replicas, on the cheapest of several instance types.
    low_month: Decimal | None = None
    budget_left: Decimal | None = None


@dataclass(frozen=True, slots=True)
class DraftProblem:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """The checks that need a look, those that pass, and how many of the former forbid the request or only warn."""

    unmet: Sequence[Check]
    passed: Sequence[Check]
    failing: int
    warnings: int


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The cold start of a version. `amount` is empty while it is unknown."""

    amount: str
    detail: str


@dataclass(frozen=True, slots=True)
class WeightsCard:
    """The location and size of a version's language model weights. `advice` is for references that can change."""

    uri: str
    advice: str
    size: DeclaredSize


@dataclass(frozen=True, slots=True)
class Vram:
    needed: int
    available: int
    percent: float
    tone: str


def choices_of(
    version: ModelVersion | None,
    clusters: Sequence[ClusterInfo],
    shares: Sequence[GpuShare],
    *,
    addable: Sequence[str],
    namespace: str,
    taken_names: Collection[str],
) -> Choices:
    return Choices(
        namespace=namespace,
        taken_names=taken_names,
        versions=[] if version is None else [(str(version.pk), version.label)],
        addable=addable,
        clusters=[(str(cluster.id), _cluster_label(cluster)) for cluster in clusters],
        shares=[(value_of(share), value_of(share)) for share in shares],
    )


def draft_of(form: DeployForm) -> DeployDraft | None:
    """Return the draft of a clean form. None while a field is wrong; the errors of a refused spec go to its fields."""
    if any(name != "comment" for name in form.errors):
        return None
    try:
        spec = form.spec()
    except Rejected as error:
        for name, message in error.fields.items():
            field = form.renamed.get(name, name)
            form.add_error(field if field in form.fields else None, message)
        return None
    data = form.cleaned_data
    return DeployDraft(
        version_id=int(data["version"]),
        cluster_id=int(data["cluster"]),
        name=data["name"],
        spec=spec,
        environment=Environment(data["environment"]),
    )


def preflight_of(user: User, draft: DeployDraft | None) -> tuple[Preflight | None, str]:
    """Return the checks, or why there are none."""
    if draft is None:
        return None, "Fill in the form to see the checks."
    try:
        return preflight.check(actor=user, draft=draft), ""
    except DomainError as error:
        return None, error.message


def problems_of(form: forms.Form) -> list[DraftProblem]:
    """Return each wrong field with its message, for the side card."""
    return [
        DraftProblem(str(form.fields[name].label), " ".join(str(text) for text in errors))
        for name, errors in form.errors.items()
        if name in form.fields
    ]


def fit_of(checked: Preflight | None) -> Check | None:
    if checked is None:
        return None
    return next((check for check in checked.checks if check.name == "Capacity now"), None)


def sort_checks(checked: Preflight | None) -> CheckCounts:
    checks = checked.checks if checked else ()
    failing = sum(check.is_refusal for check in checks)
    return CheckCounts(
        unmet=sorted((c for c in checks if c.ok is not True), key=lambda c: not c.is_refusal),
        passed=[check for check in checks if check.ok is True],
        failing=failing,
        warnings=sum(check.ok is False for check in checks) - failing,
    )


def cost_card(cost: Cost | None) -> CostCard | None:
    if cost is None:
        return None
    facts = (
        # First where it is the headline by which lists name the cost.
        *_rollout_facts(cost),
        CostFact("At min replicas", cost.per_hour, " / h", low=cost.cheapest_per_hour),
        CostFact(
            "At max replicas",
            _per_hour(cost.month_max),
            " / h",
            low=_per_hour(cost.cheapest_month_max),
        ),
        CostFact("Monthly cost (min)", cost.month_min, low=cost.cheapest_month_min),
        CostFact("Monthly cost (max)", cost.month_max, low=cost.cheapest_month_max),
        *_team_facts(cost),
    )
    now = clock.now()
    return CostCard(
        facts=facts,
        budget=cost.budget,
        spent=cost.spent,
        spent_percent=_percent(cost.spent, cost.budget),
        month_percent=_month_percent(now),
        month=f"{now:%B}",
        tone=_tone(cost),
        forecast=_describe_forecast(cost),
        max_per_hour=_per_hour(cost.month_max),
        low_month=cost.month_min if cost.cheapest_month_min is None else cost.cheapest_month_min,
        budget_left=_subtract(cost.budget, cost.spent),
    )


def stored_cost_card(cost: Mapping[str, Any]) -> CostCard | None:
    """Return the cost that is stored with a change request."""
    if not cost:
        return None
    return cost_card(Cost.from_json(cost))


def vram_of(advice: Advice | None, share: GpuShare | None) -> Vram | None:
    """Return the memory on each GPU of the chosen share."""
    if advice is None or share is None or not share.vram_mib:
        return None
    needed, available = advice.need.mib_on(share.gpus), share.vram_mib // share.gpus
    part = 100 * needed / available
    tone = "bad" if part > 100 else "warn" if part > 85 else ""
    return Vram(needed, available, part, tone)


def weights_of(version: ModelVersion | None) -> WeightsCard | None:
    """Return the weights of a language model. None for any other version."""
    if version is None:
        return None
    size = declared_size.from_version(version.source_uri, version.metadata, version.signature)
    if not version.source_uri:
        return WeightsCard(version.storage_uri, "", size) if size.is_read else None
    reference = external_weights.parse(version.source_uri)
    return WeightsCard(reference.uri, reference.advice, size)


def cold_start_of(version: ModelVersion | None, data: Mapping[str, str]) -> ColdStart | None:
    """Return the cold start, only with scale to zero, where the first request waits for it."""
    if version is None or data.get("scaling_can_scale_to_zero") != ON:
        return None
    starts = measurements.list_start_seconds(version)
    if not starts:
        return ColdStart("", "Not known yet: this model has not been started.")
    middle = sorted(starts)[len(starts) // 2]
    detail = f"{len(starts)} start{'' if len(starts) == 1 else 's'} measured; the slowest took {max(starts)} s"
    return ColdStart(f"about {middle} s", detail)


def _cluster_label(cluster: ClusterInfo) -> str:
    simulated = ", simulated GPUs" if cluster.is_simulated else ""
    return f"{cluster.name} · {cluster.region}{simulated}"


def _per_hour(month: Decimal | None) -> Decimal | None:
    return None if month is None else (month / HOURS_PER_MONTH).quantize(CENT)


def _percent(part: Decimal | None, whole: Decimal | None) -> float | None:
    return float(100 * part / whole) if part is not None and whole else None


def _subtract(whole: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if whole is None or part is None else whole - part


def _month_percent(now: datetime) -> float:
    days = calendar.monthrange(now.year, now.month)[1]
    return 100 * (now.day - 1 + now.hour / 24) / days


def _rollout_facts(cost: Cost) -> list[CostFact]:
    """Return the cost of running two revisions during the rollout. Empty if they do not overlap."""
    if not cost.overlap_seconds:
        return []
    days = Decimal(cost.overlap_seconds) / 86400
    lasts = f"{days:.1f} days" if days >= 2 else format_duration(cost.overlap_seconds)
    headline = cost.headline
    return [CostFact(f"Running both for about {lasts}", headline.amount, f" {headline.unit}")]


def _team_facts(cost: Cost) -> list[CostFact]:
    if cost.team_month_min is None:
        return []
    return [CostFact("Team, full month", cost.team_month_max)]


def _tone(cost: Cost) -> str:
    if cost.budget is None or cost.forecast is None:
        return ""
    return "warn" if max(cost.forecast, cost.team_month_max or 0) > cost.budget else "ok"


def _describe_forecast(cost: Cost) -> str:
    if cost.budget is None:
        return ""
    if cost.forecast is None:
        return "Forecast not known: a price is missing."
    over = cost.forecast - cost.budget
    balance = f"over by {format_money(over)}" if over > 0 else f"{format_money(-over)} left"
    full = cost.team_month_max
    month = "" if full is None else f"; full month {format_money(full)}"
    return f"Forecast this month with this: {format_money(cost.forecast)}, {balance}{month}"
