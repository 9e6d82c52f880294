"""Delegations of a team's leads in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import delegations, teams
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM


class DelegationSerializer(Serializer):
    id = serializers.IntegerField()
    lead = serializers.CharField(source="lead.username")
    delegate = serializers.CharField(source="delegate.username")
    reason = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class NewDelegationSerializer(Serializer):
    username = serializers.CharField(max_length=150, help_text="a team member who is not a lead")
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(help_text="at most 60 days after the start")
    reason = serializers.CharField(max_length=300)


class DelegationsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_delegations",
        tags=["teams"],
        responses={200: DelegationSerializer(many=True), 404: PROBLEM},
        description="Current and future delegations.",
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = delegations.list_open(actor=actor, team=team)
        return Response(DelegationSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="name_delegate",
        tags=["teams"],
        request=NewDelegationSerializer,
        responses={
            201: DelegationSerializer,
            403: PROBLEM,
            404: PROBLEM,
            409: PROBLEM,
            422: PROBLEM,
        },
        description="A lead's own delegate. Four eyes apply to the delegate too.",
    )
    def post(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(NewDelegationSerializer, request)
        delegation = delegations.name_delegate(actor=actor, team=team, **body)
        return Response(DelegationSerializer(delegation).data, status=status.HTTP_201_CREATED)


class DelegationView(APIView):
    @extend_schema(
        operation_id="end_delegation",
        tags=["teams"],
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
    )
    def delete(self, request: Request, slug: str, delegation_id: int) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        delegations.end(actor=actor, team=team, delegation_id=delegation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
