"""Yesterday cost more than is usual for the deployment or the team."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict
from fleet.costs.domain.anomalies import Anomaly
from portal.core.definitions.figures import format_money

KIND: Final = AlertKind(
    code="cost_anomaly",
    label="Unusual cost",
    advice="See the cost chart for releases and scaling, and Advice for what to stop or make smaller.",
)


def decide(anomaly: Anomaly | None) -> AlertVerdict:
    """Decide on yesterday's anomaly. None means that the cost was as usual, or that too few days are known to tell."""
    if anomaly is None or not anomaly.is_rise:
        return AlertVerdict(is_firing=False)
    return AlertVerdict(
        is_firing=True,
        message=f"{anomaly.day:%-d %B} cost {format_money(anomaly.amount)}; "
        f"{format_money(anomaly.usual_amount)} was expected.",
    )
