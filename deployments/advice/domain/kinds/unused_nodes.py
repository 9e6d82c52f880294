"""A GPU node on which nothing ran for a week."""

from __future__ import annotations

from typing import Final

from deployments.advice.domain.advice import Risk, Saving, per_month, rate
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import WEEK_HOURS, NodeFacts
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.counts import format_count

CODE: Final = "unused-node"
TITLE: Final = "Unused node"


def decide(facts: NodeFacts) -> Saving | None:
    """Advise on a node without use. Only sealed hours count: in an hour that is not sealed, somebody may hold it."""
    price = facts.usd_per_hour_amount
    if price is None or facts.held_hours or facts.idle_hours < WEEK_HOURS:
        return None
    cost = per_month(price)
    return Saving(
        message="Remove the node or scale its group down: no pod held a GPU of it for 7 days.",
        evidence=(
            EvidenceLine("Instance type", f"{facts.instance_type}, {facts.capacity_type}"),
            EvidenceLine("GPUs", format_count(facts.gpus, "GPU")),
            EvidenceLine("Hours without a pod", f"{facts.idle_hours} of {WEEK_HOURS}"),
        ),
        cost_amount=cost,
        saving_amount=cost,
        formula=f"{rate(price)} \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        risk=Risk.LOW,
        risk_reason="It is free capacity: the next replica waits for a node to start.",
        proposal=None,
    )
