"""Clusters, nodes, pods and prices."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.api import serializers as shapes
from fleet.selectors import capacity, clusters, overview, pods, prices
from fleet.services import clusters as cluster_services
from fleet.services import connection_test, serving_policies
from portal.accounts.models import User
from portal.core import clock


def actor_of(request: Request) -> User:
    """Every view here is for signed-in people only, so the user is one of ours."""
    return cast("User", request.user)


class ClustersView(APIView):
    @extend_schema(
        operation_id="clusters", tags=["fleet"], responses=shapes.ClusterSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        return Response(shapes.ClusterSerializer(clusters.list_clusters(), many=True).data)

    @extend_schema(
        operation_id="register_cluster",
        tags=["fleet"],
        description="Platform admins only. Registering a name again changes its connection.",
        request=shapes.ClusterDraftSerializer,
        responses={201: shapes.ClusterSerializer},
    )
    def post(self, request: Request) -> Response:
        body = shapes.ClusterDraftSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        pk = cluster_services.register(actor=actor_of(request), draft=body.draft())
        found = shapes.ClusterSerializer(clusters.get_cluster(pk))
        return Response(found.data, status=status.HTTP_201_CREATED)


class ClusterView(APIView):
    @extend_schema(operation_id="cluster", tags=["fleet"], responses=shapes.ClusterSerializer)
    def get(self, request: Request, cluster_id: int) -> Response:
        return Response(shapes.ClusterSerializer(clusters.get_cluster(cluster_id)).data)


class ServingPolicyView(APIView):
    @extend_schema(
        operation_id="get_serving_policy",
        tags=["fleet"],
        description="What is served on the cluster with; empty: the portal's own setting. "
        "Platform admins only.",
        responses=shapes.ServingPolicySerializer,
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        found = serving_policies.policy_of(actor=actor_of(request), cluster_id=cluster_id)
        return Response(shapes.ServingPolicySerializer(found).data)

    @extend_schema(
        operation_id="set_serving_policy",
        tags=["fleet"],
        description="The whole policy. Platform admins only. Revisions keep their server image.",
        request=shapes.ServingPolicySerializer,
        responses=shapes.ServingPolicySerializer,
    )
    def put(self, request: Request, cluster_id: int) -> Response:
        body = shapes.ServingPolicySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        serving_policies.set_policy(
            actor=actor_of(request), cluster_id=cluster_id, wanted=body.wanted()
        )
        return self.get(request, cluster_id)


class ClusterTestView(APIView):
    @extend_schema(
        operation_id="test_cluster",
        tags=["fleet"],
        description="Try the connection now. Platform admins only.",
        request=None,
        responses=shapes.ConnectionCheckSerializer(many=True),
    )
    def post(self, request: Request, cluster_id: int) -> Response:
        found = connection_test.run(actor=actor_of(request), cluster_id=cluster_id)
        return Response(shapes.ConnectionCheckSerializer(found, many=True).data)


class SharesView(APIView):
    @extend_schema(
        operation_id="cluster_shares",
        tags=["fleet"],
        description="The GPU shares that a cluster offers, their price and how many fit now.",
        responses=shapes.ShareSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        found = capacity.list_shares(cluster_id=clusters.get_cluster(cluster_id).id)
        return Response(shapes.ShareSerializer(found, many=True).data)


class NodesView(APIView):
    @extend_schema(
        operation_id="nodes",
        tags=["fleet"],
        description="GPU nodes, those with the most idle GPUs first. Of other teams' pods only "
        "their share is told.",
        parameters=[shapes.NodeFilterSerializer],
        responses=shapes.NodeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        asked = shapes.NodeFilterSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = overview.fleet_overview(
            actor=actor_of(request), cluster_id=asked.validated_data.get("cluster")
        )
        return Response(shapes.NodeSerializer(found.nodes, many=True).data)


class PodsView(GenericAPIView[Any]):
    serializer_class = shapes.PodSerializer

    @extend_schema(
        operation_id="pods",
        tags=["fleet"],
        description="Pods of your teams that exist now, newest first.",
        parameters=[shapes.PodFilterSerializer],
        responses=shapes.PodSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        asked = shapes.PodFilterSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = pods.list_visible_to(
            actor_of(request),
            cluster_id=asked.validated_data.get("cluster"),
            team_slug=asked.validated_data.get("team"),
        )
        page = self.paginate_queryset(found)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class PricesView(APIView):
    @extend_schema(
        operation_id="prices",
        tags=["fleet"],
        description="List prices as of today, with their source.",
        responses=shapes.PriceSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        found = prices.list_prices(on=clock.now().date())
        return Response(shapes.PriceSerializer(found, many=True).data)
