"""GPU shares and nodes in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.observation.domain.node_notices import NoticeKind
from portal.api.base_serializer import Serializer, dollars


class ShareSerializer(Serializer):
    instance_type = serializers.CharField()
    gpu_name = serializers.CharField()
    capacity_type = serializers.CharField()
    gpu_resource = serializers.CharField()
    gpus = serializers.IntegerField()
    vram_mib = serializers.IntegerField()
    usd_per_hour_amount = dollars(allow_null=True)
    price_source = serializers.CharField()
    price_date = serializers.DateField(allow_null=True)
    free_now = serializers.IntegerField(
        help_text="replicas that fit on free GPUs of nodes that take every pod which requests this capacity type"
    )
    free_tainted = serializers.IntegerField(
        help_text="replicas that fit on free GPUs of nodes which take only pods that tolerate their taints"
    )
    taints = serializers.ListField(
        child=serializers.CharField(),
        help_text="Taints of free_tainted, for placement.tolerations.",
    )
    nodes = serializers.IntegerField()
    is_startable = serializers.BooleanField(help_text="a node pool would start a node for it")
    is_simulated = serializers.BooleanField()
    is_claimed = serializers.BooleanField(
        help_text="devices of a DRA driver: request it with placement.device_claims"
    )


class HolderSerializer(Serializer):
    name = serializers.CharField(source="label")
    is_visible = serializers.BooleanField()
    team_slug = serializers.CharField()
    namespace = serializers.CharField()
    workload_name = serializers.CharField()
    deployment = serializers.CharField()
    pod_name = serializers.CharField()
    share_ppm = serializers.IntegerField(help_text="millionths of one GPU")
    since = serializers.DateTimeField(allow_null=True)
    utilisation = serializers.FloatField(allow_null=True)
    utilisation_source = serializers.CharField()


class GpuSerializer(Serializer):
    holders = HolderSerializer(many=True)
    free_ppm = serializers.IntegerField()
    tainted_ppm = serializers.IntegerField(
        help_text="neither held nor offered: its device is tainted"
    )
    taint = serializers.CharField(help_text="key, value and effect, and who set it")


class NoticeSerializer(Serializer):
    """An announcement about a node."""

    kind = serializers.ChoiceField(
        choices=[(kind.value, kind.value) for kind in NoticeKind],
        help_text="reclaim: the provider takes the node back; removal: something else removes it; gpu-fault: a GPU of it is faulty",
    )
    title = serializers.CharField()
    detail = serializers.CharField()
    reported_by = serializers.CharField(source="source", help_text="Source of the information.")
    xid = serializers.IntegerField(
        allow_null=True, help_text="NVIDIA's number of the error; null: another fault, or none"
    )


class NodeSerializer(Serializer):
    """A GPU node."""

    id = serializers.IntegerField()
    cluster_id = serializers.IntegerField()
    cluster_name = serializers.CharField()
    name = serializers.CharField()
    instance_type = serializers.CharField()
    capacity_type = serializers.CharField()
    zone = serializers.CharField()
    gpu_product = serializers.CharField()
    gpu_count = serializers.IntegerField()
    gpu_memory_mib = serializers.IntegerField()
    is_ready = serializers.BooleanField()
    is_schedulable = serializers.BooleanField()
    is_simulated = serializers.BooleanField()
    reserved_by = serializers.ListField(
        child=serializers.CharField(),
        help_text="taints that a pod has to tolerate to start here, but for those that every pod tolerates",
    )
    usd_per_hour_amount = dollars(allow_null=True)
    idle_usd_per_hour_amount = dollars(allow_null=True)
    gpus = GpuSerializer(many=True, source="tiles")
    notices = NoticeSerializer(many=True)
    last_seen_at = serializers.DateTimeField()


class NodeFilterSerializer(Serializer):
    cluster = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    name = serializers.CharField(required=False, max_length=253, help_text="exactly this one")
