"""Budget alerts that were sent."""

from __future__ import annotations

from django.db import models


class BudgetAlert(models.Model):
    """A team's month crossed a threshold of its budget; notified once for each budget."""

    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    # Its first day, UTC.
    month = models.DateField()
    # fleet.budgets.domain.thresholds.Threshold
    threshold = models.CharField(max_length=10)
    budget_amount = models.DecimalField(max_digits=12, decimal_places=2)
    spent_amount = models.DecimalField(max_digits=14, decimal_places=2)
    # Null: a price was missing.
    forecast_amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "month", "threshold", "budget_amount"],
                name="one_alert_for_each_threshold",
            )
        ]

    def __str__(self) -> str:
        return f"{self.team_id} {self.month:%Y-%m} {self.threshold}"
