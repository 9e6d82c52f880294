"""Clusters in the API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.clusters.domain.ca_bundle import MAX_BYTES
from fleet.clusters.domain.serving_metrics import Origin
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.api.base_serializer import Serializer
from portal.api.definition_serializers import serializer_of


class CertificateSerializer(Serializer):
    subject = serializers.CharField()
    fingerprint = serializers.CharField(help_text="SHA-256")
    expires_at = serializers.DateTimeField()


class ServingMetricsSerializer(Serializer):
    origin = serializers.ChoiceField(
        choices=[origin.value for origin in Origin],
        help_text="Source of the metrics of model servers. none: nothing reads them.",
    )
    pods = serializers.IntegerField(help_text="pods that are read through Prometheus")
    direct_pods = serializers.IntegerField(
        allow_null=True,
        help_text="pods that it lacks and that are read directly; null: all. Those of open rollouts are too",
    )
    unread_pods = serializers.IntegerField(help_text="pods beyond what is read directly")
    read_at = serializers.DateTimeField(
        allow_null=True, help_text="when Prometheus last answered; null: never"
    )
    problem = serializers.CharField(help_text="why not through Prometheus; empty: through it")


class InstallationSerializer(Serializer):
    identity = serializers.CharField(
        help_text="the label slipway.dev/installation of what it writes"
    )
    suspended_reason = serializers.CharField(
        help_text="why this portal writes nothing to clusters; empty while it may"
    )


class OtherInstallationSerializer(Serializer):
    identity = serializers.CharField()
    namespaces = serializers.ListField(child=serializers.CharField())
    objects = serializers.IntegerField(help_text="model servers and routes of it")


class ClusterSerializer(Serializer):
    """A cluster to deploy to."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    region = serializers.CharField()
    gateway_url = serializers.CharField()
    is_reachable = serializers.BooleanField(allow_null=True)
    last_error = serializers.CharField(help_text="Empty while the cluster responds.")
    last_seen_at = serializers.DateTimeField(allow_null=True)
    watch_seen_at = serializers.DateTimeField(allow_null=True)
    capabilities = serializers.SerializerMethodField(
        help_text="kueue.queues: those of the namespaces of teams that you may see"
    )
    is_simulated = serializers.BooleanField()
    has_prometheus = serializers.BooleanField(
        help_text="whether a Prometheus is registered for the cluster"
    )
    prometheus_certificates = CertificateSerializer(
        many=True, help_text="certificates trusted for its Prometheus; empty: public ones"
    )
    serving_metrics = ServingMetricsSerializer()
    installation = serializers.SerializerMethodField(help_text="this installation of Slipway")
    other_installations = serializers.SerializerMethodField(
        help_text="other installations whose objects the last probe found here: they are left alone. "
        "Empty for readers who see some teams only"
    )

    @extend_schema_field(InstallationSerializer)
    def get_installation(self, _cluster: ClusterInfo) -> dict[str, Any]:
        return dict(InstallationSerializer(self.context["installation"]).data)

    @extend_schema_field(OtherInstallationSerializer(many=True))
    def get_other_installations(self, cluster: ClusterInfo) -> list[dict[str, Any]]:
        if self.context["namespaces"] is not None:
            return []
        return [item.to_json() for item in cluster.other_installations]

    @extend_schema_field(serializers.JSONField())
    def get_capabilities(self, cluster: ClusterInfo) -> dict[str, Any]:
        """Return the capabilities. The `namespaces` of the context are those whose queues the user may see; None
        means all.
        """
        namespaces = self.context["namespaces"]
        found = cluster.capabilities
        if found.kueue is not None and namespaces is not None:
            found = replace(found, kueue=found.kueue.keep_namespaces(namespaces))
        return found.to_json()


ServingPolicySerializer = serializer_of(ServingPolicy)


class ClusterDraftSerializer(Serializer):
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
        help_text="address that the portal uses, for PromQL guards and latency percentiles",
    )
    prometheus_token_path = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=400,
        help_text="file with its bearer token; the portal and its workers read it, it is never copied",
    )
    prometheus_ca_pem = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_BYTES,
        help_text="PEM certificates of the authority that signs its address; only these are trusted",
    )
    has_prometheus_sigv4 = serializers.BooleanField(
        default=False,
        help_text="Amazon Managed Prometheus: sign requests with the cluster's AWS role",
    )


class ConnectionCheckSerializer(Serializer):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True)
    detail = serializers.CharField()
    fix = serializers.CharField()
