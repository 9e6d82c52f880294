"""Clusters in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.clusters.domain.ca_bundle import MAX_BYTES
from fleet.clusters.domain.serving_policy import ServingPolicy
from portal.api.base_serializer import Serializer
from portal.api.definition_serializers import serializer_of


class CertificateSerializer(Serializer):
    subject = serializers.CharField()
    fingerprint = serializers.CharField(help_text="SHA-256")
    expires_at = serializers.DateTimeField()


class ClusterSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    region = serializers.CharField()
    gateway_url = serializers.CharField()
    is_reachable = serializers.BooleanField(allow_null=True)
    last_error = serializers.CharField(help_text="empty while the cluster responds")
    last_seen_at = serializers.DateTimeField(allow_null=True)
    watch_seen_at = serializers.DateTimeField(allow_null=True)
    capabilities = serializers.JSONField(source="capabilities.to_json")
    is_simulated = serializers.BooleanField()
    has_prometheus = serializers.BooleanField(
        help_text="whether a Prometheus is registered for the cluster"
    )
    prometheus_certificates = CertificateSerializer(
        many=True, help_text="certificates trusted for its Prometheus; empty: public ones"
    )


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
