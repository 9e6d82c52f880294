"""Clusters in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.clusters.api.serializers import (
    ClusterDraftSerializer,
    ClusterSerializer,
    ConnectionCheckSerializer,
    ServingPolicySerializer,
)
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors import clusters
from fleet.clusters.services import clusters as cluster_services
from fleet.clusters.services import connection_checks, serving_policy
from fleet.clusters.services.clusters import ClusterDraft
from fleet.kube.services import installation
from portal.accounts import policy
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM


def _visible(request: Request) -> dict[str, Any]:
    """Return the namespaces whose queues the user may see: those of their teams. None means all."""
    actor = actor_of(request)
    current = installation.read()
    if policy.sees_all(actor):
        return {"namespaces": None, "installation": current}
    slugs = policy.visible_teams(actor).values_list("slug", flat=True)
    return {"namespaces": frozenset(slugs), "installation": current}


class ClustersView(APIView):
    @extend_schema(operation_id="clusters", tags=["fleet"], responses=ClusterSerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = clusters.list_clusters()
        return Response(ClusterSerializer(rows, many=True, context=_visible(request)).data)

    @extend_schema(
        operation_id="register_cluster",
        tags=["fleet"],
        description="Platform admins only. Registering an existing name changes its connection.",
        request=ClusterDraftSerializer,
        responses={201: ClusterSerializer},
    )
    def post(self, request: Request) -> Response:
        draft = ClusterDraft(**read_body(ClusterDraftSerializer, request))
        pk = cluster_services.register(actor=actor_of(request), draft=draft)
        cluster = ClusterSerializer(clusters.get_cluster(pk), context=_visible(request))
        return Response(cluster.data, status=status.HTTP_201_CREATED)


class ClusterView(APIView):
    @extend_schema(operation_id="cluster", tags=["fleet"], responses=ClusterSerializer)
    def get(self, request: Request, cluster_id: int) -> Response:
        cluster = clusters.get_cluster(cluster_id)
        return Response(ClusterSerializer(cluster, context=_visible(request)).data)

    @extend_schema(
        operation_id="delete_cluster",
        tags=["fleet"],
        description="Platform admins only, and only while nothing in Slipway uses the cluster. The "
        "cluster itself is not changed.",
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
    )
    def delete(self, request: Request, cluster_id: int) -> Response:
        cluster_services.delete(actor=actor_of(request), cluster_id=cluster_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ServingPolicyView(APIView):
    @extend_schema(
        operation_id="get_serving_policy",
        tags=["fleet"],
        description="The cluster's serving policy; an empty field means the portal's own setting. "
        "Platform admins only.",
        responses=ServingPolicySerializer,
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        serving = serving_policy.get_policy(actor=actor_of(request), cluster_id=cluster_id)
        return Response(ServingPolicySerializer(serving).data)

    @extend_schema(
        operation_id="set_serving_policy",
        tags=["fleet"],
        description="Replaces the whole policy. Platform admins only. Existing revisions keep their server image.",
        request=ServingPolicySerializer,
        responses=ServingPolicySerializer,
    )
    def put(self, request: Request, cluster_id: int) -> Response:
        body = read_body(ServingPolicySerializer, request)
        serving_policy.set_policy(
            actor=actor_of(request), cluster_id=cluster_id, serving=ServingPolicy.from_json(body)
        )
        return self.get(request, cluster_id)


class ClusterTestView(APIView):
    @extend_schema(
        operation_id="test_cluster",
        tags=["fleet"],
        description="Test the connection now. Platform admins only.",
        request=None,
        responses=ConnectionCheckSerializer(many=True),
    )
    def post(self, request: Request, cluster_id: int) -> Response:
        checks = connection_checks.run(actor=actor_of(request), cluster_id=cluster_id)
        return Response(ConnectionCheckSerializer(checks, many=True).data)
