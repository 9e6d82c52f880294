"""What fits, and the nodes, in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.capacity.api import serializers as capacity_serializers
from fleet.capacity.selectors import capacity, overview
from fleet.clusters.selectors import clusters
from portal.api.views import actor_of


class SharesView(APIView):
    @extend_schema(
        operation_id="cluster_shares",
        tags=["fleet"],
        description="The GPU shares that a cluster offers, by capacity type, with their price and "
        "how many fit on free GPUs now.",
        responses=capacity_serializers.ShareSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        listed = capacity.list_shares(cluster_id=clusters.get_cluster(cluster_id).id)
        found = [share for share in listed if share.nodes or share.is_startable]
        return Response(capacity_serializers.ShareSerializer(found, many=True).data)


class NodesView(APIView):
    @extend_schema(
        operation_id="nodes",
        tags=["fleet"],
        description="GPU nodes, those with the most idle GPUs first. Of other teams' pods only "
        "their share is told.",
        parameters=[capacity_serializers.NodeFilterSerializer],
        responses=capacity_serializers.NodeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        asked = capacity_serializers.NodeFilterSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = overview.fleet_overview(
            actor=actor_of(request), cluster_id=asked.validated_data.get("cluster")
        )
        return Response(capacity_serializers.NodeSerializer(found.nodes, many=True).data)
