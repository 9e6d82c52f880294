"""GPU shares and nodes in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.capacity.api.serializers import NodeFilterSerializer, NodeSerializer, ShareSerializer
from fleet.capacity.selectors import capacity, overview
from fleet.clusters.selectors import clusters
from portal.api.requests import actor_of, read_query


class SharesView(APIView):
    @extend_schema(
        operation_id="cluster_shares",
        tags=["fleet"],
        description="The GPU shares that a cluster offers, by capacity type, with their price and "
        "how many fit on free GPUs now.",
        responses=ShareSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        shares = capacity.list_shares(cluster_id=clusters.get_cluster(cluster_id).id)
        available = [share for share in shares if share.nodes or share.is_startable]
        return Response(ShareSerializer(available, many=True).data)


class NodesView(APIView):
    @extend_schema(
        operation_id="nodes",
        tags=["fleet"],
        description="GPU nodes, those with the most idle GPUs first. Pods of other teams show only "
        "their GPU share.",
        parameters=[NodeFilterSerializer],
        responses=NodeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        query = read_query(NodeFilterSerializer, request)
        fleet = overview.fleet_overview(actor=actor_of(request), cluster_id=query.get("cluster"))
        return Response(NodeSerializer(fleet.nodes, many=True).data)
