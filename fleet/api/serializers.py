"""Shapes of the fleet in the API. Amounts are decimal dollars as text; null is "not known"."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from fleet.domain.certificates import MOST_BYTES
from fleet.domain.serving_policies import ServingPolicy
from fleet.domain.spending import GroupBy, Step
from fleet.services.clusters import ClusterDraft

Shape = serializers.Serializer[Any]


def dollars(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=6, **options)


class CertificateSerializer(Shape):
    subject = serializers.CharField()
    fingerprint = serializers.CharField(help_text="SHA-256")
    expires_at = serializers.DateTimeField()


class ClusterSerializer(Shape):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    region = serializers.CharField()
    gateway_url = serializers.CharField()
    is_reachable = serializers.BooleanField(allow_null=True)
    last_error = serializers.CharField(help_text="empty while it answers")
    last_seen_at = serializers.DateTimeField(allow_null=True)
    watch_seen_at = serializers.DateTimeField(allow_null=True)
    capabilities = serializers.JSONField()
    is_simulated = serializers.BooleanField()
    has_prometheus = serializers.BooleanField(help_text="whether one is registered for it")
    prometheus_certificates = CertificateSerializer(
        many=True, help_text="the only ones its Prometheus is trusted by; none: the public ones"
    )


class ClusterDraftSerializer(Shape):
    name = serializers.CharField(max_length=40)
    kind = serializers.CharField(max_length=12)
    gateway_url = serializers.CharField(max_length=200)
    region = serializers.CharField(default="us-east-1", max_length=30)
    kubeconfig_path = serializers.CharField(default="", allow_blank=True, max_length=400)
    eks_name = serializers.CharField(default="", allow_blank=True, max_length=100)
    role_arn = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="AWS role to assume for this cluster; empty uses the portal's own",
    )
    gateway_namespace = serializers.CharField(default="slipway-gateway", max_length=63)
    gateway_name = serializers.CharField(default="slipway", max_length=63)
    prometheus_url = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="as the portal reaches it; for PromQL guards and percentiles of latency",
    )
    prometheus_token_path = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=400,
        help_text="file with its bearer token, read by the portal and its workers, never copied",
    )
    prometheus_ca_pem = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MOST_BYTES,
        help_text="PEM certificates of the authority that signs its address; only these are trusted",
    )
    has_prometheus_sigv4 = serializers.BooleanField(
        default=False,
        help_text="Amazon Managed Prometheus: sign requests with the cluster's AWS role",
    )

    def draft(self) -> ClusterDraft:
        return ClusterDraft(**self.validated_data)


class ServingPolicySerializer(Shape):
    triton_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    triton_vllm_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    vllm_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    storage_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    role_arn = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="that pods assume (IRSA)"
    )
    storage_secret = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=253,
        help_text="with S3 keys, in every team's namespace",
    )
    prometheus_url = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="as the cluster's KEDA reaches it"
    )
    cache_node_group = serializers.CharField(default="", allow_blank=True, max_length=253)

    def wanted(self) -> ServingPolicy:
        return ServingPolicy(**self.validated_data)


class ConnectionCheckSerializer(Shape):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True)
    detail = serializers.CharField()
    fix = serializers.CharField()


class ShareSerializer(Shape):
    instance_type = serializers.CharField()
    gpu_name = serializers.CharField()
    gpu_resource = serializers.CharField()
    gpus = serializers.IntegerField()
    vram_mib = serializers.IntegerField()
    usd_per_hour_amount = dollars(allow_null=True)
    price_source = serializers.CharField()
    price_date = serializers.DateField(allow_null=True)
    free_now = serializers.IntegerField()
    nodes = serializers.IntegerField()
    is_simulated = serializers.BooleanField()


class HolderSerializer(Shape):
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


class GpuSerializer(Shape):
    holders = HolderSerializer(many=True)
    free_ppm = serializers.IntegerField()


class NodeSerializer(Shape):
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
    usd_per_hour_amount = dollars(allow_null=True)
    idle_usd_per_hour_amount = dollars(allow_null=True)
    gpus = GpuSerializer(many=True, source="tiles")
    last_seen_at = serializers.DateTimeField()


class PodSerializer(Shape):
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField()
    name = serializers.CharField()
    team = serializers.CharField(source="workload.team.slug", default="")
    workload = serializers.CharField(source="workload.name", default="")
    node = serializers.CharField(source="node_name")
    phase = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    is_ready = serializers.BooleanField()
    restart_count = serializers.IntegerField()
    gpu_resource = serializers.CharField()
    gpu_units = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    scheduled_at = serializers.DateTimeField(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)


class PriceSerializer(Shape):
    instance_type = serializers.CharField()
    region = serializers.CharField()
    capacity_type = serializers.CharField()
    usd_per_hour_amount = dollars()
    gpu_name = serializers.CharField()
    gpu_count = serializers.IntegerField()
    gpu_memory_mib = serializers.IntegerField()
    is_mig_capable = serializers.BooleanField()
    vcpu = serializers.IntegerField()
    memory_gib = serializers.IntegerField()
    price_source = serializers.CharField(source="source")
    valid_from = serializers.DateField()


class KeySerializer(Shape):
    name = serializers.CharField(source="label")
    team_slug = serializers.CharField()
    model = serializers.CharField()
    deployment = serializers.CharField()
    revision = serializers.CharField()
    cluster_name = serializers.CharField()
    is_idle = serializers.BooleanField()


class UsageSerializer(Shape):
    key = KeySerializer()
    requests = serializers.IntegerField()
    failures = serializers.IntegerField()
    inferences = serializers.IntegerField()
    observed_ms = serializers.IntegerField(help_text="pod time that was observed")
    utilisation = serializers.FloatField(allow_null=True)
    utilisation_source = serializers.CharField(source="source")


class CostRowSerializer(Shape):
    key = KeySerializer()
    amount = dollars()
    allocated_amount = dollars(help_text="of hours that are sealed")
    estimated_amount = dollars(help_text="of hours that are not sealed yet")
    gpu_hours = dollars()
    utilisation = serializers.FloatField(allow_null=True)
    utilisation_source = serializers.CharField()
    inferences = serializers.IntegerField(allow_null=True)
    usd_per_1k_inferences_amount = dollars(allow_null=True)
    previous_amount = dollars(allow_null=True)
    change_ratio = serializers.FloatField(allow_null=True)


class UnpricedNodeSerializer(Shape):
    cluster_name = serializers.CharField()
    node_name = serializers.CharField()
    instance_type = serializers.CharField()
    capacity_type = serializers.CharField()


class CostPointSerializer(Shape):
    at = serializers.DateTimeField()
    key = KeySerializer()
    amount = dollars()
    is_estimated = serializers.BooleanField()


class CostsSerializer(Shape):
    """The amounts of `rows` and `idle` sum to `total_amount` exactly."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    rows = CostRowSerializer(many=True)
    idle = CostRowSerializer(allow_null=True)
    total_amount = dollars()
    previous_total_amount = dollars(allow_null=True)
    sealed_to = serializers.DateTimeField(allow_null=True, source="spend.sealed_to")
    has_demo_data = serializers.BooleanField(source="spend.has_demo_data")
    unpriced = UnpricedNodeSerializer(many=True, source="spend.unpriced")


class SpanSerializer(Shape):
    """Hours that begin in [start, end), UTC; without them, this month."""

    start = serializers.DateTimeField(required=False)
    end = serializers.DateTimeField(required=False)
    team = serializers.CharField(required=False, help_text="one of your teams; without it, all")
    group_by = serializers.ChoiceField(choices=[g.value for g in GroupBy], default=GroupBy.TEAM)
    step = serializers.ChoiceField(choices=[s.value for s in Step], default=Step.DAY)


class PodFilterSerializer(Shape):
    cluster = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    team = serializers.CharField(required=False)


class NodeFilterSerializer(Shape):
    cluster = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
