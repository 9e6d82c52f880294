"""A cluster's serving policy in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.clusters.domain.images import MAX_ENTRIES
from fleet.clusters.domain.serving_policy import POD_SECURITY
from portal.api.base_serializer import Serializer


class ServingPolicySerializer(Serializer):
    triton_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    triton_vllm_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    vllm_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    storage_image = serializers.CharField(default="", allow_blank=True, max_length=300)
    role_arn = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="IAM role that pods assume (IRSA), one per team: {team} is replaced with its short name",
    )
    storage_secret = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=253,
        help_text="Secret in each team's namespace with S3 keys that read only that team's models",
    )
    prometheus_url = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="address inside the cluster, for KEDA",
    )
    cache_node_group = serializers.CharField(default="", allow_blank=True, max_length=253)
    allowed_images = serializers.ListField(
        child=serializers.CharField(max_length=300),
        default=list,
        max_length=MAX_ENTRIES,
        help_text="allowed for teams: repository, path/*, repository@sha256 (a digest is "
        "required) or repository@sha256:…; empty: the portal's own list",
    )
    priority_classes = serializers.ListField(
        child=serializers.CharField(max_length=253),
        default=list,
        max_length=MAX_ENTRIES,
        help_text="allowed for teams; empty: the portal's own list",
    )
    gateway_namespaces = serializers.ListField(
        child=serializers.CharField(max_length=253),
        default=list,
        max_length=MAX_ENTRIES,
        help_text="namespaces of the gateway's proxies, in addition to the Gateway's own",
    )
    egress_cidrs = serializers.ListField(
        child=serializers.CharField(max_length=50),
        default=list,
        max_length=MAX_ENTRIES,
        help_text="networks that pods can reach over HTTPS; empty: the portal's own list",
    )
    control_plane_cidrs = serializers.ListField(
        child=serializers.CharField(max_length=50),
        default=list,
        max_length=MAX_ENTRIES,
        help_text="networks of the API server, which golden requests and trials come from",
    )
    pod_security = serializers.ChoiceField(
        choices=POD_SECURITY,
        default="",
        allow_blank=True,
        help_text="Pod Security Standard enforced in team namespaces; empty: restricted",
    )
