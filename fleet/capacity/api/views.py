"""GPU shares and nodes in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.capacity.api.serializers import NodeFilterSerializer, NodeSerializer, ShareSerializer
from fleet.capacity.selectors import capacity, nodes, overview
from fleet.clusters.selectors import clusters
from fleet.models import Node
from portal.api.pagination import CursorPage
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


class NodePage(CursorPage):
    ordering = "id"
    # A node with eight shared GPUs has some kilobytes.
    max_page_size = 80


class NodesView(GenericAPIView[Node]):
    serializer_class = NodeSerializer
    pagination_class = NodePage

    @extend_schema(
        operation_id="nodes",
        tags=["fleet"],
        description="GPU nodes with their holders. Pods of other teams show only their GPU share.",
        parameters=[NodeFilterSerializer],
        responses=NodeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        query = read_query(NodeFilterSerializer, request)
        present = nodes.list_present(cluster_id=query.get("cluster"), name=query.get("name", ""))
        page = self.paginate_queryset(present) or []
        views = overview.list_nodes(actor=actor_of(request), ids=[node.pk for node in page])
        return self.get_paginated_response(self.get_serializer(views, many=True).data)
