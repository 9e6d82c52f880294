"""A team's month reached its budget, or will."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="budget",
    label="Budget",
    advice="See Costs and Advice for what to stop or make smaller.",
    # The event budget.reached tells each threshold once.
    notifies=False,
)
_URGENT: Final = (
    ("100%", "This month's budget is spent."),
    ("forecast", "At the current rate the month will cost more than its budget."),
    ("80%", "80% of this month's budget is spent."),
)


def decide(crossed: Collection[str]) -> AlertVerdict:
    """Decide on a team's budget. `crossed` are the thresholds of this month and budget that were notified."""
    for threshold, message in _URGENT:
        if threshold in crossed:
            return AlertVerdict(is_firing=True, message=message)
    return AlertVerdict(is_firing=False)
