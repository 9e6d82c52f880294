"""What the page of a new deployment shows: choices, side card, review."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms

from deployments.domain.preflight import Check, Cost, DeployDraft, Preflight
from deployments.domain.problems import Rejected
from deployments.models import ModelVersion
from deployments.services import preflight
from deployments.web.deploy_form import ENGINES, Choices, DeployForm
from fleet.selectors.capacity import GpuShare
from fleet.selectors.clusters import ClusterInfo
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError

_ENGINE_DETAILS = {
    "kserve-triton": "autoscaling, canary by the route",
    "triton": "plain Deployment, a fixed number of replicas",
}


@dataclass(frozen=True, slots=True)
class ShareRow:
    share: GpuShare
    title: str
    value: str
    is_chosen: bool
    is_too_small: bool
    # Part of the VRAM that stays free; None when the model's need is not known.
    headroom: float | None
    note: str
    free_words: str


@dataclass(frozen=True, slots=True)
class EngineChoice:
    name: str
    title: str
    detail: str
    # Why it is not offered; empty when it is.
    reason: str


@dataclass(frozen=True, slots=True)
class CostFact:
    label: str
    amount: Decimal | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CostCard:
    facts: Sequence[CostFact]
    budget: Decimal | None
    spent: Decimal | None
    spent_percent: float | None
    month_percent: float
    month: str
    tone: str
    words: str


@dataclass(frozen=True, slots=True)
class Problem:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Vram:
    needed: int
    there: int
    percent: float
    tone: str


def value_of(share: GpuShare) -> str:
    return f"{share.instance_type}|{share.gpu_resource}|{share.gpus}"


def choices_of(
    versions: Sequence[ModelVersion], clusters: Sequence[ClusterInfo], shares: Sequence[GpuShare]
) -> Choices:
    return Choices(
        versions=[(str(version.pk), version.label) for version in versions],
        clusters=[(str(cluster.id), _cluster_label(cluster)) for cluster in clusters],
        shares=[(value_of(share), value_of(share)) for share in shares],
    )


def share_rows(
    shares: Sequence[GpuShare], *, version: ModelVersion | None, chosen: str
) -> list[ShareRow]:
    """Those that are large enough first."""
    rows = [_share_row(share, version, chosen) for share in shares]
    return sorted(rows, key=lambda row: row.is_too_small)


def default_share(shares: Sequence[GpuShare], version: ModelVersion | None) -> str:
    """The cheapest that is large enough and free; else the cheapest that is large enough."""
    large = [share for share in shares if not is_too_small(share, version)]
    free = [share for share in large if share.free_now]
    return value_of((free or large)[0]) if large else ""


def engine_choices(cluster: ClusterInfo | None) -> list[EngineChoice]:
    offered = cluster.capabilities.get("engines") if cluster else None
    notes = " ".join(cluster.capabilities.get("notes", [])) if cluster else ""
    return [
        EngineChoice(
            name=name,
            title=title,
            detail=_ENGINE_DETAILS.get(name, ""),
            reason=""
            if offered is None or name in offered
            else f"off: {cluster.name if cluster else ''} cannot run it. {notes}".strip(),
        )
        for name, title in ENGINES
    ]


def draft_of(form: DeployForm) -> DeployDraft | None:
    """None while a field that it needs is wrong; a spec that is refused shows at its fields."""
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
    )


def preflight_of(user: User, draft: DeployDraft | None) -> tuple[Preflight | None, str]:
    """The checks, or why there are none."""
    if draft is None:
        return None, "Fill in the fields first; the checks follow."
    try:
        return preflight.check(actor=user, draft=draft), ""
    except DomainError as error:
        return None, error.message


def problems_of(form: forms.Form) -> list[Problem]:
    """Every wrong field in words, for the side card."""
    return [
        Problem(str(form.fields[name].label), " ".join(str(text) for text in errors))
        for name, errors in form.errors.items()
        if name in form.fields
    ]


def fit_of(checked: Preflight | None) -> Check | None:
    if checked is None:
        return None
    return next((check for check in checked.checks if check.name == "Capacity now"), None)


def cost_card(cost: Cost | None) -> CostCard | None:
    if cost is None:
        return None
    facts = (
        CostFact("Now, at the fewest replicas", cost.per_hour, " / h"),
        CostFact("Month at the fewest", cost.month_min),
        CostFact("Month at the most", cost.month_max),
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
        words=_budget_words(cost),
    )


def stored_cost_card(cost: Mapping[str, Any]) -> CostCard | None:
    """The cost that a change request carries."""
    if not cost:
        return None
    names = ("per_hour", "month_min", "month_max", "budget", "spent", "forecast")
    amounts = {name: None if cost.get(name) is None else Decimal(cost[name]) for name in names}
    return cost_card(
        Cost(
            per_hour=amounts["per_hour"],
            month_min=amounts["month_min"],
            month_max=amounts["month_max"],
            budget=amounts["budget"],
            spent=amounts["spent"],
            forecast=amounts["forecast"],
        )
    )


def vram_of(version: ModelVersion | None, share: GpuShare | None) -> Vram | None:
    if version is None or share is None or not version.vram_estimate_mib or not share.vram_mib:
        return None
    part = 100 * version.vram_estimate_mib / share.vram_mib
    tone = "bad" if part > 100 else "warn" if part > 85 else ""
    return Vram(version.vram_estimate_mib, share.vram_mib, part, tone)


def _cluster_label(cluster: ClusterInfo) -> str:
    simulated = ", simulated GPUs" if cluster.is_simulated else ""
    return f"{cluster.name} · {cluster.region}{simulated}"


def is_too_small(share: GpuShare, version: ModelVersion | None) -> bool:
    needed = version.vram_estimate_mib if version else None
    return bool(needed and share.vram_mib and needed > share.vram_mib)


def _share_row(share: GpuShare, version: ModelVersion | None, chosen: str) -> ShareRow:
    needed = version.vram_estimate_mib if version else None
    headroom = 1 - needed / share.vram_mib if needed and share.vram_mib else None
    too_small = is_too_small(share, version)
    notes = ["too small for this model"] if too_small else []
    if share.is_simulated:
        notes.append("simulated")
    return ShareRow(
        share=share,
        title=f"{share.gpus} \N{MULTIPLICATION SIGN} {share.gpu_name.removeprefix('NVIDIA-')}",
        value=value_of(share),
        is_chosen=value_of(share) == chosen,
        is_too_small=too_small,
        headroom=None if headroom is None else max(0.0, headroom),
        note=", ".join(notes),
        free_words=f"{share.free_now} free",
    )


def _percent(part: Decimal | None, whole: Decimal | None) -> float | None:
    return float(100 * part / whole) if part is not None and whole else None


def _month_percent(now: datetime) -> float:
    days = calendar.monthrange(now.year, now.month)[1]
    return 100 * (now.day - 1 + now.hour / 24) / days


def _tone(cost: Cost) -> str:
    if cost.budget is None or cost.forecast is None:
        return ""
    return "warn" if cost.forecast > cost.budget else "ok"


def _budget_words(cost: Cost) -> str:
    if cost.budget is None:
        return ""
    if cost.forecast is None:
        return "The forecast is not known, because a price is not."
    over = cost.forecast - cost.budget
    words = f"over by ${over:,.2f}" if over > 0 else f"${-over:,.2f} left"
    return f"Forecast with this: ${cost.forecast:,.2f}, {words}"
