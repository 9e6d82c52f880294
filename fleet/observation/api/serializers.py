"""Pods in the API."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.base_serializer import Serializer


class PodSerializer(Serializer):
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField()
    name = serializers.CharField()
    team = serializers.CharField(source="workload.team.slug", default="")
    workload = serializers.CharField(source="workload.name", default="")
    node = serializers.CharField(source="node_name")
    node_id = serializers.IntegerField(allow_null=True)
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


class PodFilterSerializer(Serializer):
    cluster = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    team = serializers.CharField(required=False)
