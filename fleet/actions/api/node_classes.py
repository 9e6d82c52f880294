"""EC2NodeClasses in the API: reading them, and requesting a change or a new one."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.actions.api.serializers import (
    ActionCommentSerializer,
    FleetActionDetailsSerializer,
)
from fleet.actions.api.views import HOW, details
from fleet.actions.domain import node_class_settings
from fleet.actions.domain.node_class_settings import LARGEST_GIB, SMALLEST_GIB, NodeClassSettings
from fleet.actions.services import class_requests, node_classes
from fleet.clusters.selectors import clusters
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS


def _tags() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=400),
        max_length=20,
        default=list,
        help_text="key=value; the complete list. Empty in a change: unchanged",
    )


class NodeClassSettingsSerializer(ActionCommentSerializer):
    ami_alias = serializers.CharField(
        default="", allow_blank=True, max_length=30, help_text="al2023@latest, bottlerocket@v1.20.0"
    )
    role = serializers.CharField(
        default="", allow_blank=True, max_length=128, help_text="the name of an IAM role"
    )
    instance_profile = serializers.CharField(
        default="", allow_blank=True, max_length=128, help_text="instead of a role"
    )
    subnet_tags = _tags()
    security_group_tags = _tags()
    volume_gib = serializers.IntegerField(
        default=None,
        allow_null=True,
        min_value=SMALLEST_GIB,
        max_value=LARGEST_GIB,
        help_text="Size of the disk with images and logs.",
    )


class NewNodeClassSerializer(NodeClassSettingsSerializer):
    name = serializers.CharField(max_length=63)


class NodeClassSerializer(Serializer):
    name = serializers.CharField()
    ami_alias = serializers.CharField(help_text="Empty if selected by other means.")
    role = serializers.CharField()
    instance_profile = serializers.CharField()
    subnet_tags = serializers.ListField(
        child=serializers.CharField(), help_text="Empty if selected by other means."
    )
    security_group_tags = serializers.ListField(
        child=serializers.CharField(), help_text="Empty if selected by other means."
    )
    volume_gib = serializers.IntegerField(
        allow_null=True, help_text="Null means Karpenter's default."
    )


class NodeClassesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="node_classes",
        tags=["fleet"],
        description="Karpenter's EC2NodeClasses, as the cluster has them now; empty where it does not serve them.",
        responses=NodeClassSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        cluster = clusters.get_cluster(cluster_id)
        rows = [
            {"name": item["metadata"]["name"], **node_class_settings.read(item).to_json()}
            for item in node_classes.list_or_unavailable(cluster_id=cluster.id)
        ]
        return Response(NodeClassSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="create_node_class",
        tags=["fleet"],
        description=f"Request a new EC2NodeClass. The cluster checks it by a dry run. {HOW}",
        request=NewNodeClassSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int) -> Response:
        actor, body = actor_of(request), read_body(NewNodeClassSerializer, request)
        action = class_requests.request_class_creation(
            actor=actor,
            cluster_id=cluster_id,
            name=body["name"],
            settings=NodeClassSettings.from_json(body),
            comment=body.get("comment", ""),
        )
        return Response(FleetActionDetailsSerializer(details(actor, action)).data, status=201)


class NodeClassView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="change_node_class",
        tags=["fleet"],
        description="Request that an EC2NodeClass gets these settings; empty fields are not changed. The cluster "
        f"checks it by a dry run. {HOW}",
        request=NodeClassSettingsSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int, node_class: str) -> Response:
        actor, body = actor_of(request), read_body(NodeClassSettingsSerializer, request)
        action = class_requests.request_class_change(
            actor=actor,
            cluster_id=cluster_id,
            name=node_class,
            settings=NodeClassSettings.from_json(body),
            comment=body.get("comment", ""),
        )
        return Response(FleetActionDetailsSerializer(details(actor, action)).data, status=201)
