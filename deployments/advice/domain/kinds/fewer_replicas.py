"""Fewer replicas, where the busiest hour of the week needs fewer than always run."""

from __future__ import annotations

import math
from typing import Final

from deployments.advice.domain import queueing
from deployments.advice.domain.advice import (
    Proposal,
    Risk,
    Saving,
    limit_saving,
    per_month,
    rate,
)
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import DeploymentFacts, busiest, mean_utilisation
from deployments.sizing.domain.demand import BUSY_PERCENT
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.counts import format_count
from portal.core.definitions.figures import format_percent

CODE: Final = "fewer-replicas"
TITLE: Final = "Fewer replicas"
UNUSED_BELOW: Final = 0.4


def decide(facts: DeploymentFacts) -> Saving | None:
    week, now = facts.last_week(), facts.spec.min_replicas
    utilisation = mean_utilisation(week)
    if now < 2 or utilisation is None or utilisation >= UNUSED_BELOW:
        return None
    if not facts.runs_always or facts.replica_amount is None or facts.spec.nodes > 1:
        return None
    if queueing.is_long(facts):
        return (
            None  # The same dollars are those of long_queue.py, which keeps the queue from growing.
        )
    peak = busiest(week)
    needed = max(1, math.ceil(peak * 100 / BUSY_PERCENT))
    if needed >= now:
        return None
    price = facts.replica_amount
    saving = limit_saving(per_month(price * (now - needed)), cost=facts.month_amount)
    most = facts.spec.max_replicas if facts.spec.max_replicas > now else needed
    return Saving(
        message=f"Run {format_count(needed, 'replica')} instead of {now}: the GPUs were "
        f"{format_percent(utilisation)} used in the last week.",
        evidence=(
            EvidenceLine("GPU utilisation, 7 days", format_percent(utilisation)),
            EvidenceLine("Busiest hour", f"GPU time of {peak:.2f} replicas"),
            EvidenceLine("Needed at 70% utilisation", format_count(needed, "replica")),
        ),
        cost_amount=facts.month_amount,
        saving_amount=saving,
        formula=f"({now} \N{MINUS SIGN} {needed}) replicas \N{MULTIPLICATION SIGN} {rate(price)} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        risk=Risk.LOW if needed > 1 else Risk.MEDIUM,
        risk_reason="One replica is left: its restart is an outage."
        if needed == 1
        else "The busiest hour of the week still fits at 70% utilisation.",
        proposal=Proposal(
            kind="scale", settings={"min_replicas": needed, "max_replicas": max(needed, most)}
        ),
    )
