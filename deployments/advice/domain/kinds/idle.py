"""No requests for a week: stop it."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from deployments.advice.domain.advice import Proposal, Risk, Saving
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.domain.facts import DeploymentFacts
from fleet.gpus.domain.money import HOURS_PER_MONTH
from portal.core.definitions.figures import format_money

CODE: Final = "idle"
TITLE: Final = "Idle deployment"


def decide(facts: DeploymentFacts) -> Saving | None:
    """Advise to stop an idle deployment. Every hour must be known: one that was not read may have had requests."""
    week = facts.last_week()
    if not facts.runs_always or not all(hour.is_quiet for hour in week):
        return None
    cost = facts.month_amount
    return Saving(
        message="Stop it: no request in the last 7 days.",
        evidence=(
            EvidenceLine("Requests, 7 days", "0"),
            EvidenceLine("Hours observed", f"{len(week)} of {len(week)}"),
            EvidenceLine(
                "Last 7 days cost",
                format_money(sum((hour.cost_amount for hour in week), Decimal(0))),
            ),
        ),
        cost_amount=cost,
        saving_amount=cost,
        formula=f"cost of the last 168 h ÷ 168 \N{MULTIPLICATION SIGN} {HOURS_PER_MONTH} h",
        risk=Risk.LOW,
        risk_reason="Its endpoint stops responding. A start brings the same revision back.",
        proposal=Proposal(kind="stop"),
    )
