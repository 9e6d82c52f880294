"""Office hours of node pools in the API."""

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
from fleet.actions.services import hours_requests
from fleet.clusters.selectors import clusters
from fleet.models import FleetAction
from fleet.office_hours.domain.hours import DAYS, MOST_CLOSED, OfficeHours
from fleet.office_hours.domain.sizes import PoolKind, kind_of_slug
from fleet.office_hours.selectors import office_hours
from portal.accounts.models import User
from portal.api.base_serializer import Serializer, choice_of
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS
from portal.core.errors import Invalid, NotFound


def _day() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=5),
        min_length=2,
        max_length=2,
        allow_null=True,
        default=None,
    )


class OfficeHoursDaysSerializer(Serializer):
    """The start and end of each day as ["07:30", "22:00"]; null means closed all day. An end no later than the
    start is on the next day; "24:00" is the end of the day.
    """

    monday = _day()
    tuesday = _day()
    wednesday = _day()
    thursday = _day()
    friday = _day()
    saturday = _day()
    sunday = _day()


class PoolOfficeHoursSerializer(ActionCommentSerializer):
    timezone = serializers.CharField(default="UTC", max_length=60, help_text="its IANA name")
    days = OfficeHoursDaysSerializer()
    closed_size = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=MOST_CLOSED,
        help_text="outside of them: nodes of a node group or a static NodePool, else the GPU limit",
    )


class KeptHoursSerializer(Serializer):
    kind = choice_of(PoolKind, source="row.target_kind")
    name = serializers.CharField(source="row.target")
    timezone = serializers.CharField(source="hours.timezone")
    days = serializers.DictField(
        source="row.hours.days", help_text="Hours by weekday: from and to, or null."
    )
    closed_size = serializers.IntegerField(source="hours.closed_size")
    hours_per_week = serializers.DecimalField(
        source="hours.hours_per_week", max_digits=6, decimal_places=2
    )
    is_open = serializers.BooleanField(help_text="Whether the portal last opened it.")
    next_edge_at = serializers.DateTimeField(help_text="when it opens or closes next")
    current_size = serializers.CharField(help_text="Size as last read.")
    open_size = serializers.CharField(help_text="Size in office hours.")
    edge_at = serializers.DateTimeField(source="row.edge_at", allow_null=True)
    changed_from = serializers.CharField(
        source="changed_by_hand",
        help_text="Change that a person made since then. Empty if there is none.",
    )
    changed_at = serializers.DateTimeField(source="row.changed_at", allow_null=True)
    problem = serializers.CharField(
        source="row.problem", help_text="Empty if the office hours are kept."
    )
    is_ending = serializers.BooleanField(source="row.is_ending")


class OfficeHoursListView(APIView):
    @extend_schema(
        operation_id="office_hours",
        tags=["fleet"],
        description="Node pools of the cluster that have office hours, and what was last done for them.",
        responses=KeptHoursSerializer(many=True),
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        cluster = clusters.get_cluster(cluster_id)
        kept = office_hours.list_of_cluster(cluster.id)
        return Response(KeptHoursSerializer(kept, many=True).data)


class OfficeHoursView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="set_office_hours",
        tags=["fleet"],
        description="Request office hours of a node pool (`node-pool`) or a node group (`node-group`): outside "
        f"of them it has `closed_size`. {HOW}",
        request=PoolOfficeHoursSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int, kind: str, pool: str) -> Response:
        actor, body = actor_of(request), read_body(PoolOfficeHoursSerializer, request)
        action = hours_requests.request_office_hours(
            actor=actor,
            cluster_id=cluster_id,
            kind=_kind(kind),
            name=pool,
            hours=_hours(body),
            comment=body.get("comment", ""),
        )
        return _shown(actor, action)


class EndOfficeHoursView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="end_office_hours",
        tags=["fleet"],
        description=f"Request that the office hours end: the pool gets its size back. {HOW}",
        request=ActionCommentSerializer,
        responses={201: FleetActionDetailsSerializer, **REFUSALS},
    )
    def post(self, request: Request, cluster_id: int, kind: str, pool: str) -> Response:
        actor, body = actor_of(request), read_body(ActionCommentSerializer, request)
        action = hours_requests.request_office_hours_end(
            actor=actor,
            cluster_id=cluster_id,
            kind=_kind(kind),
            name=pool,
            comment=body.get("comment", ""),
        )
        return _shown(actor, action)


def _kind(slug: str) -> PoolKind:
    kind = kind_of_slug(slug)
    if kind is None:
        raise NotFound(f"There is no kind of node pool {slug}. Use node-pool or node-group.")
    return kind


def _hours(body: dict[str, object]) -> OfficeHours:
    try:
        return OfficeHours.from_json(body)
    except ValueError as error:
        raise Invalid(
            "The office hours are not valid.",
            fields={"days": f"{error}; write them for {', '.join(DAYS[:2])}, … or null"},
        ) from error


def _shown(actor: User, action: FleetAction) -> Response:
    return Response(FleetActionDetailsSerializer(details(actor, action)).data, status=201)
