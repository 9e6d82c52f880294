"""One node and its hours in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.capacity.api.serializers import GpuSerializer, NoticeSerializer
from portal.api.base_serializer import Serializer, dollars


class ConditionSerializer(Serializer):
    type = serializers.CharField()
    status = serializers.CharField()
    is_healthy = serializers.BooleanField(allow_null=True)
    reason = serializers.CharField()
    message = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)


class TaintSerializer(Serializer):
    key = serializers.CharField()
    value = serializers.CharField()
    effect = serializers.CharField()


class GpuErrorSerializer(Serializer):
    gpu = serializers.CharField(help_text="index on the node")
    uuid = serializers.CharField()
    xid = serializers.IntegerField()
    meaning = serializers.CharField(help_text="Empty if unknown here; see NVIDIA's catalogue.")
    is_of_program = serializers.BooleanField(help_text="a program's own fault, not the GPU's")
    since = serializers.DateTimeField(help_text="when it was first read")


class DeviceHolderSerializer(Serializer):
    name = serializers.CharField(source="label")
    is_visible = serializers.BooleanField()
    team_slug = serializers.CharField()
    namespace = serializers.CharField()
    claim = serializers.CharField(help_text="name of the ResourceClaim")
    pod_name = serializers.CharField(help_text="Empty if no pod uses the claim.")
    deployment = serializers.CharField()


class DeviceTaintSerializer(TaintSerializer):
    since = serializers.CharField(help_text="Empty if unknown.")
    rule = serializers.CharField(help_text="name of the DeviceTaintRule; empty: the driver's own")


class DeviceSerializer(Serializer):
    name = serializers.CharField(source="device.name")
    pool = serializers.CharField(source="device.pool")
    kind = serializers.CharField(source="device.kind", help_text="gpu, or mig for a slice")
    profile = serializers.CharField(source="device.profile", help_text="Profile of a slice.")
    gpu = serializers.CharField(
        source="device.gpu", help_text="the physical GPU: the same for all its slices"
    )
    product = serializers.CharField(source="device.product")
    memory_mib = serializers.IntegerField(source="device.memory_mib")
    is_healthy = serializers.BooleanField(
        source="device.is_healthy", help_text="false: the driver tainted it or withdrew its slice"
    )
    is_free = serializers.BooleanField(
        allow_null=True, help_text="Null if claims are not readable."
    )
    taints = DeviceTaintSerializer(many=True, help_text="Taints that keep new claims away.")
    holders = DeviceHolderSerializer(many=True, help_text="several share one by capacity only")


class NodeDetailsSerializer(Serializer):
    id = serializers.IntegerField(source="node.pk")
    cluster_id = serializers.IntegerField(source="node.cluster_id")
    cluster_name = serializers.CharField(source="node.cluster.name")
    name = serializers.CharField(source="node.name")
    uid = serializers.CharField(source="node.uid")
    instance_type = serializers.CharField(source="node.instance_type")
    capacity_type = serializers.CharField(source="node.capacity_type")
    region = serializers.CharField(source="node.region")
    zone = serializers.CharField(source="node.zone")
    gpu_product = serializers.CharField(source="node.gpu_product")
    gpu_count = serializers.IntegerField(source="node.gpu_count")
    gpu_memory_mib = serializers.IntegerField(source="node.gpu_memory_mib")
    sharing = serializers.CharField(
        source="sharing.mode",
        help_text="whole, mig, mps, shared (time-sliced), or claimed: a DRA driver offers them",
    )
    replicas = serializers.IntegerField(
        source="sharing.replicas", help_text="Number of pods that can share each GPU."
    )
    mig_slices = serializers.DictField(
        child=serializers.IntegerField(), help_text="number of slices by profile"
    )
    is_ready = serializers.BooleanField(source="node.is_ready")
    is_schedulable = serializers.BooleanField(source="node.is_schedulable")
    is_simulated = serializers.BooleanField(source="node.is_simulated")
    usd_per_hour_amount = dollars(allow_null=True)
    price_source = serializers.CharField(source="price.source", default="")
    price_date = serializers.DateField(source="price.valid_from", default=None, allow_null=True)
    conditions = ConditionSerializer(many=True)
    taints = TaintSerializer(many=True)
    notices = NoticeSerializer(many=True)
    gpu_errors = GpuErrorSerializer(many=True, help_text="the last XID of each GPU that had one")
    gpu_errors_read_at = serializers.DateTimeField(
        source="node.xids_read_at",
        allow_null=True,
        help_text="Null if dcgm-exporter was never read.",
    )
    neuron_cores = serializers.IntegerField(
        help_text="NeuronCores of each Neuron device; 0: the node has GPUs"
    )
    neuron_utilisation = serializers.FloatField(
        source="node.neuron_utilisation",
        allow_null=True,
        help_text="Utilisation of all NeuronCores, 0 to 1. Null if unknown.",
    )
    neuron_memory_mib = serializers.IntegerField(
        source="node.neuron_memory_mib",
        allow_null=True,
        help_text="Memory in use on all Neuron devices.",
    )
    neuron_read_at = serializers.DateTimeField(
        source="node.neuron_read_at",
        allow_null=True,
        help_text="Null if neuron-monitor was never read.",
    )
    gpus = GpuSerializer(many=True, source="tiles")
    devices = DeviceSerializer(
        many=True,
        source="devices.rows",
        help_text="Devices of NVIDIA's DRA driver, which pods claim.",
    )
    devices_read_at = serializers.DateTimeField(
        source="devices.read_at",
        allow_null=True,
        help_text="Null if ResourceSlices and ResourceClaims are not readable.",
    )
    first_seen_at = serializers.DateTimeField(source="node.first_seen_at")
    last_seen_at = serializers.DateTimeField(source="node.last_seen_at")
    gone_at = serializers.DateTimeField(source="node.gone_at", allow_null=True)


class LineSerializer(Serializer):
    name = serializers.CharField(source="label")
    is_visible = serializers.BooleanField(source="holder.is_visible")
    is_idle = serializers.BooleanField(source="holder.is_idle")
    team_slug = serializers.CharField(source="holder.team_slug")
    namespace = serializers.CharField(source="holder.namespace")
    workload_name = serializers.CharField(source="holder.workload_name")
    deployment = serializers.CharField()
    gpu_milliseconds = serializers.IntegerField()
    cost_usd = dollars(source="cost_amount")


class NodeHourSerializer(Serializer):
    hour = serializers.DateTimeField()
    is_sealed = serializers.BooleanField()
    usd_per_hour_amount = dollars(allow_null=True)
    price_source = serializers.CharField()
    cost_usd = dollars(source="cost_amount", help_text="the sum of the lines")
    lines = LineSerializer(many=True)


class NodeHoursSerializer(Serializer):
    hours = NodeHourSerializer(many=True)
    older_than = serializers.DateTimeField(
        allow_null=True, help_text="the parameter of the next request; null: no older hours"
    )


class StartsSerializer(Serializer):
    starts = serializers.IntegerField(
        source="count", help_text="how many were measured, at most 20"
    )
    seconds = serializers.IntegerField(help_text="median from the pod's node until it is ready")
    steps = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="median seconds: image (and start of containers), download, compare (digests), load",
    )


class RevisionStartsSerializer(Serializer):
    team_slug = serializers.CharField()
    deployment = serializers.CharField()
    workload_name = serializers.CharField()
    here = StartsSerializer()
    elsewhere = StartsSerializer(
        allow_null=True, help_text="Null if it never started on another node of the type."
    )


class HoursQuerySerializer(Serializer):
    older_than = serializers.DateTimeField(
        required=False,
        help_text="Limit the list to hours that began before this time. Default: now.",
    )


class UseSerializer(Serializer):
    at = serializers.DateTimeField()
    utilisation = serializers.FloatField(source="ratio", allow_null=True)
    covered = serializers.FloatField(
        allow_null=True, help_text="part of the held GPU time that was measured"
    )
    sources = serializers.ListField(child=serializers.CharField())


class UseQuerySerializer(Serializer):
    days = serializers.IntegerField(required=False, min_value=1, max_value=7, default=3)
