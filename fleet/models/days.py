"""Roll-ups of the ledger and of readings, so that pages read days and teams instead of every hour.

The database itself adds each ledger row to its roll-ups in the statement that inserts it (the triggers of
migration 0002_ledger_triggers), so they are equal to the rows at any moment. Money is integer micro-dollars.
"""

from __future__ import annotations

from django.db import models

from fleet.models.clusters import Cluster, Workload


class LedgerSum(models.Model):
    """A sum of ledger rows, adjustments included. `is_idle` marks GPU time that nobody held."""

    cluster_name = models.CharField(max_length=40)
    team_slug = models.CharField(max_length=32, blank=True)
    is_idle = models.BooleanField()
    is_demo = models.BooleanField()
    gpu_milliseconds = models.BigIntegerField()
    cost_micros = models.BigIntegerField()

    class Meta:
        abstract = True


class LedgerTeamHour(LedgerSum):
    hour = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "cluster_name", "team_slug", "is_idle", "is_demo"],
                name="one_team_hour",
            )
        ]
        indexes = [models.Index(fields=["team_slug", "hour"])]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h {self.team_slug} {self.cost_micros}"


class LedgerTeamDay(LedgerSum):
    day = models.DateField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "cluster_name", "team_slug", "is_idle", "is_demo"],
                name="one_team_day",
            )
        ]
        indexes = [models.Index(fields=["team_slug", "day"])]

    def __str__(self) -> str:
        return f"{self.day} {self.team_slug} {self.cost_micros}"


class LedgerDeploymentSum(LedgerSum):
    """A sum of ledger rows of a deployment's revision. `model`, `deployment` and `revision` are labels of the
    workload; empty: it has none.
    """

    model = models.TextField(blank=True)
    deployment = models.TextField(blank=True)
    revision = models.TextField(blank=True)

    class Meta:
        abstract = True


class LedgerDay(LedgerDeploymentSum):
    day = models.DateField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("day", "cluster_name", "team_slug", "is_idle", "is_demo"),
                    *("model", "deployment", "revision"),
                ],
                name="one_ledger_day",
            )
        ]
        # By day alone: rows of a day lie together, and all of them are read for a table.
        indexes = [
            models.Index(fields=["team_slug", "deployment", "day"]),
            models.Index(fields=["day"]),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.team_slug}/{self.deployment} {self.cost_micros}"


class LedgerFourHours(LedgerDeploymentSum):
    """Four hours that begin at 0, 4, 8, … (UTC): what a period has beside whole days."""

    start = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("start", "cluster_name", "team_slug", "is_idle", "is_demo"),
                    *("model", "deployment", "revision"),
                ],
                name="one_ledger_four_hours",
            )
        ]
        indexes = [models.Index(fields=["team_slug", "start"], name="four_hours_of_team")]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H}h {self.team_slug}/{self.deployment} {self.cost_micros}"


class LedgerMonth(LedgerDeploymentSum):
    """A month (UTC), which is named by its first day."""

    month = models.DateField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("month", "cluster_name", "team_slug", "is_idle", "is_demo"),
                    *("model", "deployment", "revision"),
                ],
                name="one_ledger_month",
            )
        ]
        indexes = [
            models.Index(
                fields=["team_slug", "deployment", "month"], name="ledger_months_of_deployment"
            )
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} {self.team_slug}/{self.deployment} {self.cost_micros}"


class OpenHour(models.Model):
    """The estimate of a cluster's unsealed hour, kept for fleets that are too large to compute it for
    each page. Deleted when the hour is sealed.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    hour = models.DateTimeField()
    computed_at = models.DateTimeField()
    # Ids of nodes without a known price.
    unpriced_nodes = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "hour"], name="one_open_hour")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%Y-%m-%d %H}h"


class OpenHourSum(models.Model):
    """One group of the estimate."""

    open_hour = models.ForeignKey(OpenHour, on_delete=models.CASCADE, related_name="sums")
    team_slug = models.CharField(max_length=32, blank=True)
    model = models.TextField(blank=True)
    deployment = models.TextField(blank=True)
    revision = models.TextField(blank=True)
    is_idle = models.BooleanField()
    is_priced = models.BooleanField()
    gpu_milliseconds = models.BigIntegerField()
    cost_micros = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["team_slug", "open_hour"])]

    def __str__(self) -> str:
        return f"{self.open_hour_id} {self.team_slug}/{self.deployment} {self.cost_micros}"


class UsageSum(models.Model):
    """A sum of rows of WorkloadHour."""

    request_success = models.BigIntegerField()
    request_failure = models.BigIntegerField()
    inference_count = models.BigIntegerField()
    tokens = models.BigIntegerField()
    observed_ms = models.BigIntegerField()
    gpu_busy_ms = models.BigIntegerField()
    gpu_busy_source = models.CharField(max_length=10, blank=True)
    energy_mj = models.BigIntegerField(null=True)
    energy_ms = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


class WorkloadDay(UsageSum):
    day = models.DateField()
    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workload", "day"], name="one_workload_day")]

    def __str__(self) -> str:
        return f"{self.workload_id} {self.day}"


class TeamUsageDay(UsageSum):
    """The daily usage of all of a team's workloads in a cluster."""

    day = models.DateField()
    cluster_name = models.CharField(max_length=40)
    team_slug = models.CharField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "cluster_name", "team_slug"], name="one_team_use"
            )
        ]

    def __str__(self) -> str:
        return f"{self.team_slug} {self.day}"


class TeamUsageHour(UsageSum):
    """The hourly usage of all of a team's workloads in a cluster."""

    hour = models.DateTimeField()
    cluster_name = models.CharField(max_length=40)
    team_slug = models.CharField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "cluster_name", "team_slug"], name="one_team_use_of_hour"
            )
        ]

    def __str__(self) -> str:
        return f"{self.team_slug} {self.hour:%Y-%m-%d %H}h"


class SummedDay(models.Model):
    """The hours of the day are in WorkloadDay and TeamUsageDay, with `has_hours` also in TeamUsageHour: all, or
    those before `until`. The others are read by the hour.
    """

    day = models.DateField(unique=True)
    until = models.DateTimeField(null=True)
    has_hours = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{self.day}"
