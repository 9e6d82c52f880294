"""Node pools in the API: reading them, and requesting a change or a new one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.actions.api.serializers import (
    FleetActionDetailsSerializer,
    GroupSizeSerializer,
    NewPoolSerializer,
    NodeGroupSerializer,
    NodePoolSerializer,
    PoolSettingsSerializer,
)
from fleet.actions.api.views import HOW, details
from fleet.actions.domain.pool_settings import PoolSettings
from fleet.actions.selectors import pools
from fleet.actions.services import node_groups, requests
from fleet.clusters.domain.node_groups import GroupSize
from fleet.clusters.selectors import clusters
from fleet.models import FleetAction
from portal.accounts.models import User
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS


class NodePoolsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="node_pools",
        tags=["fleet"],
        description="Karpenter's node pools, as the cluster last listed them; empty without Karpenter.",
        responses=NodePoolSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        [of_cluster] = pools.list_pools(cluster_id)
        return Response(NodePoolSerializer(of_cluster.rows or (), many=True).data)

    @extend_schema(
        operation_id="create_node_pool",
        tags=["fleet"],
        description=f"Request a new Karpenter NodePool. The cluster checks it by a dry run. {HOW}",
        request=NewPoolSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int) -> Response:
        actor, body = actor_of(request), read_body(NewPoolSerializer, request)
        action = requests.request_pool_creation(
            actor=actor,
            cluster_id=cluster_id,
            name=body["name"],
            settings=_settings(body),
            comment=body.get("comment", ""),
        )
        return _shown(actor, action)


class NodePoolView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="change_node_pool",
        tags=["fleet"],
        description="Request that a Karpenter NodePool gets these settings; settings that are left out are not changed. The "
        f"cluster checks it by a dry run. {HOW}",
        request=PoolSettingsSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int, pool: str) -> Response:
        actor, body = actor_of(request), read_body(PoolSettingsSerializer, request)
        action = requests.request_pool_change(
            actor=actor,
            cluster_id=cluster_id,
            name=pool,
            settings=_settings(body),
            comment=body.get("comment", ""),
        )
        return _shown(actor, action)


class NodeGroupsView(APIView):
    @extend_schema(
        operation_id="node_groups",
        tags=["fleet"],
        description="EKS's managed node groups, as AWS has them now; empty for other clusters.",
        responses=NodeGroupSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        cluster = clusters.get_cluster(cluster_id)
        groups = node_groups.list_or_unavailable(cluster_id=cluster.id)
        return Response(NodeGroupSerializer(groups, many=True).data)


class NodeGroupView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="scale_node_group",
        tags=["fleet"],
        description=f"Request another size of a managed node group of EKS. {HOW}",
        request=GroupSizeSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int, group: str) -> Response:
        actor, body = actor_of(request), read_body(GroupSizeSerializer, request)
        action = requests.request_group_scale(
            actor=actor,
            cluster_id=cluster_id,
            name=group,
            size=GroupSize.from_json(body),
            comment=body.get("comment", ""),
        )
        return _shown(actor, action)


def _settings(body: dict[str, Any]) -> PoolSettings:
    return PoolSettings.from_json({"node_class": "", **body})


def _shown(actor: User, action: FleetAction) -> Response:
    return Response(FleetActionDetailsSerializer(details(actor, action)).data, status=201)
