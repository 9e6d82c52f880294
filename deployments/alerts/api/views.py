"""Alerts by REST."""

from __future__ import annotations

from typing import Any, Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from deployments.alerts.domain import catalogue
from deployments.alerts.domain.signals import AlertState
from deployments.alerts.selectors import alerts
from deployments.alerts.services import silences
from deployments.models import Alert
from portal.api.actions import action
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM

TAGS: Final = ["alerts"]


class AlertFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = choice_of(AlertState, default="", allow_blank=True)
    kind = serializers.ChoiceField(choices=list(catalogue.KINDS), default="", allow_blank=True)


class AlertSerializer(Serializer):
    """An alert of a team."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="team.slug")
    kind = serializers.ChoiceField(choices=list(catalogue.KINDS))
    state = serializers.SerializerMethodField()
    subject = serializers.CharField()
    message = serializers.CharField()
    advice = serializers.SerializerMethodField(help_text="Steps to take.")
    path = serializers.CharField(help_text="Path of the page that shows the alert's subject.")
    deployment_id = serializers.IntegerField(allow_null=True)
    opened_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    silenced_until = serializers.DateTimeField(allow_null=True)
    silence_reason = serializers.CharField()

    def get_advice(self, row: Alert) -> str:
        kind = catalogue.KINDS.get(row.kind)
        return kind.advice if kind else ""

    @extend_schema_field(choice_of(AlertState))
    def get_state(self, row: Alert) -> str:
        return str(alerts.state_of(row))


class SilenceSerializer(Serializer):
    hours = serializers.IntegerField(min_value=1, max_value=silences.MOST_HOURS)
    reason = serializers.CharField(max_length=500)


class AlertsView(GenericAPIView[Any]):
    serializer_class = AlertSerializer

    @extend_schema(
        operation_id="list_alerts",
        tags=TAGS,
        parameters=[AlertFilterSerializer],
        responses={200: AlertSerializer(many=True), 422: PROBLEM},
        description="List the alerts of your teams, newest first. Ended ones stay as history.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(AlertFilterSerializer, request)
        rows = alerts.list_visible_to(
            actor_of(request), team_slug=query["team"], state=query["state"], kind=query["kind"]
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(AlertSerializer(page, many=True).data)


class AlertView(GenericAPIView[Any]):
    serializer_class = AlertSerializer

    @extend_schema(
        operation_id="get_alert", tags=TAGS, responses={200: AlertSerializer, 404: PROBLEM}
    )
    def get(self, request: Request, alert_id: int) -> Response:
        row = alerts.get_visible(actor=actor_of(request), alert_id=alert_id)
        return Response(AlertSerializer(row).data)


SilenceView = action(
    silences.silence,
    operation_id="silence_alert",
    tags=TAGS,
    body=SilenceSerializer,
    shown_by=AlertSerializer,
    description="Leads only. Nobody is notified until then; an alert of the same subject that opens meanwhile is silenced, too.",
)
UnsilenceView = action(
    silences.unsilence, operation_id="unsilence_alert", tags=TAGS, shown_by=AlertSerializer
)
urlpatterns: list[URLPattern] = [
    path("alerts", AlertsView.as_view(), name="alerts"),
    path("alerts/<int:alert_id>", AlertView.as_view(), name="alert"),
    path("alerts/<int:alert_id>/silence", SilenceView.as_view(), name="silence-alert"),
    path("alerts/<int:alert_id>/unsilence", UnsilenceView.as_view(), name="unsilence-alert"),
]
