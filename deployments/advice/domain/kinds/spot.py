"""Spot nodes, for what tolerates that a node is reclaimed with two minutes' notice."""

from __future__ import annotations

from typing import Final

from deployments.advice.domain.advice import Proposal, Risk, Saving, limit_saving, per_month, rate
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import DeploymentFacts
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain.money import HOURS_PER_MONTH

CODE: Final = "spot"
TITLE: Final = "Spot nodes"


def decide(facts: DeploymentFacts) -> Saving | None:
    """Advise spot nodes. Production with one replica does not tolerate them: a reclaimed node is an outage."""
    price, spot, replicas = facts.replica_amount, facts.spot, facts.spec.min_replicas
    if facts.spec.placement.capacity != capacity_types.ON_DEMAND or facts.spec.nodes > 1:
        return None
    if facts.is_production and replicas < 2:
        return None
    if price is None or spot is None or spot.usd_per_hour_amount >= price or not facts.runs_always:
        return None
    each = spot.usd_per_hour_amount
    lower = round((price - each) * 100 / price)
    placement = facts.spec.placement.on(capacity_types.SPOT)
    return Saving(
        message=f"Run on spot nodes: they cost {lower}% less.",
        evidence=(
            EvidenceLine("On-demand", f"{rate(price)} a replica"),
            EvidenceLine("Spot", f"{rate(each)} a replica ({spot.source})"),
            EvidenceLine("Replicas", str(replicas)),
        ),
        cost_amount=facts.month_amount,
        saving_amount=limit_saving(per_month((price - each) * replicas), cost=facts.month_amount),
        formula=f"({rate(price)} \N{MINUS SIGN} {rate(each)}) \N{MULTIPLICATION SIGN} {replicas} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        risk=Risk.HIGH if facts.is_production else Risk.MEDIUM,
        risk_reason="A node can be reclaimed with two minutes' notice; the others take its requests."
        if replicas > 1
        else "A reclaimed node stops it until another one started.",
        proposal=Proposal(kind="canary", settings={"placement": placement.model_dump(mode="json")}),
    )
