"""The error budget of a standing target burns too fast."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict
from deployments.targets.domain.burn import Evaluation, RuleResult

KIND: Final = AlertKind(
    code="slo_burn",
    label="Error budget burning",
    advice="Abort a running canary or roll back; the Targets tab shows the burn rates.",
)


def decide(evaluation: Evaluation) -> AlertVerdict:
    firing = [result for result in evaluation.rules if result.fires]
    if not firing:
        return AlertVerdict(evaluation.is_burning)
    return AlertVerdict(is_firing=True, message=f"{_rate(firing[0])}. {_left(evaluation)}.")


def _rate(result: RuleResult) -> str:
    hours = result.rule.long_minutes // 60
    return (
        f"Its error budget burns {result.long_rate or 0:.1f} times as fast as allowed over {hours} h "
        f"and {result.short_rate or 0:.1f} times over {result.rule.short_minutes} min"
    )


def _left(evaluation: Evaluation) -> str:
    left = evaluation.budget_left or 0.0
    return f"{100 * left:.0f}% of the budget is left" if left > 0 else "The budget is used up"
