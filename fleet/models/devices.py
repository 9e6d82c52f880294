"""Slices and claims of NVIDIA's DRA driver as last observed. The cluster is the truth; these rows are copies."""

from __future__ import annotations

from django.db import models

from fleet.models.clusters import Cluster


class DeviceSlice(models.Model):
    """A ResourceSlice. What a node has of all its slices is in `Node.claimable`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="device_slices")
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField(default=0)
    node_name = models.CharField(max_length=253)
    pool = models.CharField(max_length=253)
    generation = models.BigIntegerField(default=0)
    # fleet.gpus.domain.devices: Counters, and Devices of the slice.
    counters = models.JSONField(default=dict)
    devices = models.JSONField(default=list)
    # Of its devices: [name, fleet.gpus.domain.device_taints.DeviceTaint]
    taints = models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_device_slice")
        ]

    def __str__(self) -> str:
        return f"{self.pool} generation {self.generation}"


class DeviceClaim(models.Model):
    """A ResourceClaim that is allocated. `pod_uid` is empty while no pod uses it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="device_claims")
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField(default=0)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64, blank=True, default="")
    pod_name = models.CharField(max_length=253, blank=True, default="")
    # When this pod took it over from another; null: it was the first.
    held_since = models.DateTimeField(null=True)
    # fleet.observation.domain.dra.Allocated
    allocated = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_per_device_claim")
        ]
        indexes = [models.Index(fields=["cluster", "pod_uid"], name="claims_of_a_pod")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
