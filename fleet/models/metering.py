"""GPU leases, prices and the ledger. GPU time is integer milliseconds; money is Decimal dollars."""

from __future__ import annotations

from django.db import models
from django.db.models.fields.json import KeyTextTransform

from fleet.models.clusters import Cluster, Node, Workload


class GpuLease(models.Model):
    """An interval in which a pod held GPUs of a node.

    `share_ppm` is in millionths of one GPU: 1,000,000 is a whole one, 2 GPUs are 2,000,000.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="leases")
    workload = models.ForeignKey(
        Workload, on_delete=models.PROTECT, null=True, related_name="leases"
    )
    pod_uid = models.CharField(max_length=64)
    pod_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    team_slug = models.CharField(max_length=32, blank=True, default="", db_index=True)
    share_ppm = models.PositiveBigIntegerField()
    started_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)
    # When this row was last changed by an observation; hours sealed before that are corrected.
    changed_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "pod_uid"], name="one_lease_per_pod"),
            models.CheckConstraint(
                condition=models.Q(ended_at=None) | models.Q(ended_at__gte=models.F("started_at")),
                name="lease_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pod_name} {self.share_ppm / 10_000:g}% of a GPU"


class PriceOrigin(models.TextChoices):
    CATALOGUE = "catalogue", "shipped catalogue"
    AWS = "aws", "AWS"
    PERSON = "person", "entered here"


class InstancePrice(models.Model):
    """Price of an instance type, valid from a day on. New prices are new rows."""

    instance_type = models.CharField(max_length=40)
    region = models.CharField(max_length=30)
    capacity_type = models.CharField(max_length=20, default="on-demand")
    usd_per_hour_amount = models.DecimalField(max_digits=14, decimal_places=6)
    gpu_name = models.CharField(max_length=30)
    gpu_count = models.PositiveIntegerField()
    gpu_memory_mib = models.PositiveIntegerField()
    is_mig_capable = models.BooleanField(default=False)
    vcpu = models.PositiveIntegerField()
    memory_gib = models.PositiveIntegerField()
    allocatable_cpu = models.CharField(max_length=20)
    allocatable_memory = models.CharField(max_length=20)
    source = models.CharField(max_length=200)
    # What a person entered is not replaced by what AWS lists.
    origin = models.CharField(
        max_length=10, choices=[(o.value, o.label) for o in PriceOrigin], default="catalogue"
    )
    valid_from = models.DateField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["instance_type", "region", "capacity_type", "valid_from"],
                name="one_price_per_day",
            )
        ]

    def __str__(self) -> str:
        return f"{self.instance_type} ${self.usd_per_hour_amount}/h"


class LedgerKind(models.TextChoices):
    ALLOCATED = "allocated"
    IDLE = "idle"
    ADJUSTMENT = "adjustment"


class LedgerRow(models.Model):
    """A sealed hour of one node, split by the holders of its GPUs. Never updated, never deleted.

    The rows of a node and hour sum to `node price x time it existed in that hour`, exactly.
    Where no price was known, `usd_per_hour_amount` is null and the cost is 0: adjustment rows add
    the cost once a price is loaded. Names are copies, so that a row outlives what it names.
    """

    hour = models.DateTimeField()
    cluster_name = models.CharField(max_length=40)
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    instance_type = models.CharField(max_length=40)
    capacity_type = models.CharField(max_length=20, default="on-demand")
    kind = models.CharField(max_length=12, choices=LedgerKind.choices)
    team_slug = models.CharField(max_length=32, blank=True, default="")
    namespace = models.CharField(max_length=63, blank=True, default="")
    workload_name = models.CharField(max_length=63, blank=True, default="")
    # A copy of Workload.labels; grouped by in SQL, so free-form.
    workload_labels = models.JSONField(default=dict)
    # GPU share x time: one GPU for one hour is 3,600,000.
    gpu_milliseconds = models.BigIntegerField()
    cost_amount = models.DecimalField(max_digits=20, decimal_places=6)
    usd_per_hour_amount = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    price_source = models.CharField(max_length=200, blank=True)
    is_demo = models.BooleanField(default=False)
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid", "hour", "kind", "team_slug", "namespace", "workload_name"],
                condition=~models.Q(kind="adjustment"),
                name="one_row_per_holder_and_hour",
            )
        ]
        indexes = [
            models.Index(fields=["team_slug", "hour"]),
            models.Index(fields=["hour", "node_uid"]),
            # One deployment of a team that has thousands, over a month.
            models.Index(
                "team_slug",
                KeyTextTransform("deployment", "workload_labels"),
                "hour",
                name="rows_of_a_deployment",
            ),
            # Of one node; the other rows are found by the constraint's index.
            models.Index(
                fields=["node_uid", "hour"],
                condition=models.Q(kind="adjustment"),
                name="adjustments_of_a_node",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h {self.kind} {self.cost_amount}"

    @property
    def is_priced(self) -> bool:
        return self.usd_per_hour_amount is not None


class SealedHour(models.Model):
    """A mark that a cluster's hour is final. Later observations become adjustment rows."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    hour = models.DateTimeField()
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "hour"], name="sealed_once")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%Y-%m-%d %H}h"


class UnpricedHour(models.Model):
    """A sealed hour of a node without a known price. Deleted once adjustment rows add the cost."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="unpriced_hours")
    hour = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "hour"], name="unpriced_once")]

    def __str__(self) -> str:
        return f"{self.node_id} {self.hour:%Y-%m-%d %H}h"
