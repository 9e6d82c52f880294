"""One node in the API, also when it is gone."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.capacity.api.node_serializers import (
    HoursQuerySerializer,
    NodeDetailsSerializer,
    NodeHoursSerializer,
    RevisionStartsSerializer,
    UseQuerySerializer,
    UseSerializer,
)
from fleet.capacity.selectors import node_details, node_history, node_starts
from fleet.costs.domain.results import Step
from fleet.gpus.domain.intervals import HOUR, hour_of
from portal.api.requests import actor_of, read_query
from portal.core import clock


class NodeDetailView(APIView):
    @extend_schema(
        operation_id="node",
        tags=["fleet"],
        description="One node: price with its source, health, how its GPUs are divided, and their "
        "holders now. Nodes that left their cluster stay, with `gone_at`.",
        responses=NodeDetailsSerializer,
    )
    def get(self, request: Request, node_id: int) -> Response:
        details = node_details.details(actor=actor_of(request), node_id=node_id)
        return Response(NodeDetailsSerializer(details).data)


class NodeHoursView(APIView):
    @extend_schema(
        operation_id="node_hours",
        tags=["fleet"],
        description="List what ran on the node hour by hour, newest first. The lines of an hour sum to "
        "what the node cost in it; those of other teams are one line.",
        parameters=[HoursQuerySerializer],
        responses=NodeHoursSerializer,
    )
    def get(self, request: Request, node_id: int) -> Response:
        query = read_query(HoursQuerySerializer, request)
        node = node_details.get_node(node_id)
        page = node_history.hours(
            actor=actor_of(request),
            node=node,
            start=hour_of(node.first_seen_at),
            end=query.get("older_than", hour_of(clock.now()) + HOUR),
        )
        return Response(NodeHoursSerializer(page).data)


class NodeStartsView(APIView):
    @extend_schema(
        operation_id="node_starts",
        tags=["fleet"],
        description="How long pods of each revision took to start on the node, compared with the same revision "
        "on other nodes of its type in the cluster. Revisions of other teams are left out.",
        responses=RevisionStartsSerializer(many=True),
    )
    def get(self, request: Request, node_id: int) -> Response:
        node = node_details.get_node(node_id)
        rows = node_starts.starts_on(actor=actor_of(request), node=node)
        return Response(RevisionStartsSerializer(rows, many=True).data)


class NodeUseView(APIView):
    @extend_schema(
        operation_id="node_utilisation",
        tags=["fleet"],
        description="Utilisation of the node's held GPU time by hour, with its sources. Hours that "
        "nobody measured are null.",
        parameters=[UseQuerySerializer],
        responses=UseSerializer(many=True),
    )
    def get(self, request: Request, node_id: int) -> Response:
        query = read_query(UseQuerySerializer, request)
        period = node_history.period(
            actor=actor_of(request),
            node=node_details.get_node(node_id),
            days=query["days"],
            step=Step.HOUR,
        )
        return Response(UseSerializer(period.use, many=True).data)
