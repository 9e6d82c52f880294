"""Typed facts of deployments, for tests of what each kind of advice says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import Saving
from deployments.advice.domain.facts import DeploymentFacts, Hour
from deployments.sizing.domain.demand import Demand, TeamLimits
from deployments.sizing.domain.memory import FileModel, Need, need_of_file
from deployments.sizing.domain.ranking import Offer, ShareKind, advise
from deployments.spec.domain.serving_spec import ServingSpec

# A Monday.
START = datetime(2026, 11, 2, tzinfo=UTC)
WEEKS = 14 * 24
HOUR_MS = 3_600_000
PRICE = Decimal("1.006")


def evidence_of(saving: Saving) -> dict[str, str]:
    return {line.name: line.value for line in saving.evidence}


def need(mib: int) -> Need:
    return need_of_file(
        FileModel(weights_mib=mib, activations_mib=0, spread_mib=0, sizes="", runtime_mib=0),
        instances=1,
    )


def offer(kind: ShareKind, **fields: Any) -> Offer:
    values = {
        "instance_type": "p4d.24xlarge",
        "gpu_name": "A100",
        "gpu_resource": "nvidia.com/gpu",
        "gpus": 1,
        "memory_mib": 40960,
        "usd_per_hour_amount": Decimal("0.5"),
        "free_replicas": 4,
        "kind": kind,
        **fields,
    }
    return Offer(**values)


MIG = offer(ShareKind.MIG, gpu_resource="nvidia.com/mig-3g.20gb", memory_mib=20480)


def hours_of(
    *,
    requests: Callable[[datetime], int] = lambda _: 100,
    busy: float = 0.1,
    replicas: int = 1,
    price: Decimal = PRICE,
    count: int = WEEKS,
) -> list[Hour]:
    starts = [START + timedelta(hours=number) for number in range(count)]
    return [
        Hour(
            start=at,
            cost_amount=price * replicas,
            requests=requests(at),
            observed_ms=HOUR_MS * replicas,
            busy_ms=int(HOUR_MS * busy * replicas) if requests(at) else 0,
        )
        for at in starts
    ]


def facts_of(
    hours: list[Hour], *, offers: tuple[Offer, ...] = (), mib: int = 8000, **fields: Any
) -> DeploymentFacts:
    needed = need(mib)
    spec = {
        "engine": "kserve-triton",
        "instance_type": "g5.xlarge",
        "min_replicas": fields.pop("replicas", 1),
        **fields.pop("spec", {}),
    }
    spec.setdefault("max_replicas", spec["min_replicas"])
    ranked = advise(need=needed, offers=offers, demand=Demand(), limits=TeamLimits())
    values: dict[str, Any] = {
        "name": "vision/ocr",
        "spec": ServingSpec(**spec),
        "is_production": True,
        "since": START,
        "until": START + timedelta(hours=len(hours)),
        "hours": hours,
        "replica_amount": PRICE,
        "need": needed,
        "choices": ranked.ranked,
        "memory_mib": 24576,
        **fields,
    }
    return DeploymentFacts(**values)


def kinds_of(facts: DeploymentFacts) -> dict[str, Saving]:
    return dict(catalogue.advise_deployment(facts))
