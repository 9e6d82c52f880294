"""Requests of callers by hour, and the gateway's counters that they are read from."""

from __future__ import annotations

from django.db import models

from fleet.models.clusters import Cluster


class CallerHour(models.Model):
    """The requests of a deployment's caller in one hour, as the gateway counted them.

    The row with an empty `caller` says that callers were counted, in `observed_ms` of the hour. Without it the hour
    is unknown; with it, a caller without a row sent nothing. Names are copied, as in the ledger.
    """

    team_slug = models.CharField(max_length=32)
    deployment = models.CharField(max_length=63)
    caller = models.CharField(max_length=40, blank=True)
    hour = models.DateTimeField()
    requests = models.BigIntegerField(default=0)
    observed_ms = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team_slug", "deployment", "hour", "caller"], name="one_caller_hour"
            )
        ]
        indexes = [models.Index(fields=["team_slug", "hour"])]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h {self.team_slug}/{self.deployment} {self.caller}"


class CallerReading(models.Model):
    """The last reading of a cluster's gateway. A reading that began before it is discarded."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    # Null: it was never read.
    read_at = models.DateTimeField(null=True)
    # Names of the proxies that were read.
    proxies = models.JSONField(default=list)
    # Why the last attempt counted nothing; empty if it did.
    problem = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.read_at}"


class CallerCounter(models.Model):
    """A counter of one proxy as last read: requests since the proxy started."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    proxy = models.CharField(max_length=253)
    series = models.CharField(max_length=700, blank=True)
    namespace = models.CharField(max_length=63)
    route = models.CharField(max_length=63)
    client = models.CharField(max_length=63)
    value = models.BigIntegerField()
    read_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "proxy", "series", "namespace", "route", "client"],
                name="one_caller_counter",
            )
        ]

    def __str__(self) -> str:
        return f"{self.proxy} {self.namespace}/{self.route} {self.client}"
