"""Service accounts of a team in the API. In a browser session only: a token makes no tokens."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import service_accounts, teams
from portal.accounts.scopes import OF_SERVICE_ACCOUNTS, Scope
from portal.accounts.tokens import NewToken
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS
from portal.api.serializers import NewTokenSerializer, TokenSerializer


class ServiceAccountSerializer(Serializer):
    name = serializers.CharField()
    username = serializers.CharField(
        source="user.username", help_text="Name shown in the audit trail."
    )
    is_active = serializers.BooleanField(source="user.is_active")
    created_at = serializers.DateTimeField(source="user.date_joined")
    last_used_at = serializers.DateTimeField(allow_null=True)
    tokens = TokenSerializer(many=True, help_text="Working tokens, newest first.")


class NewServiceAccountSerializer(Serializer):
    name = serializers.CharField(max_length=32, help_text="lowercase letters, digits and '-'")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in OF_SERVICE_ACCOUNTS]),
        default=lambda: [Scope.READ.value],
        help_text="every scope implies read",
    )
    days = serializers.IntegerField(
        min_value=1,
        max_value=365,
        default=None,
        allow_null=True,
        help_text="Lifetime of its tokens in days. Default: 90.",
    )
    requests_per_minute = serializers.IntegerField(
        min_value=1,
        default=None,
        allow_null=True,
        help_text="Null means as many as the platform allows.",
    )


class RotationSerializer(Serializer):
    token_id = serializers.IntegerField(help_text="the newest token that you know of")
    overlap_hours = serializers.ChoiceField(
        choices=service_accounts.OVERLAPS,
        default=24,
        help_text="how long the old token keeps working after the new one is made",
    )


# Without Idempotency-Key: the recorded response would contain the token.
class ServiceAccountsView(APIView):
    @extend_schema(
        operation_id="list_service_accounts",
        tags=["teams"],
        responses={200: ServiceAccountSerializer(many=True), 403: PROBLEM, 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = service_accounts.list_service_accounts(actor=actor, team=team)
        return Response(ServiceAccountSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="create_service_account",
        tags=["teams"],
        request=NewServiceAccountSerializer,
        responses={201: NewTokenSerializer, **REFUSALS},
    )
    def post(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(NewServiceAccountSerializer, request)
        made = service_accounts.create(actor=actor, team=team, **body)
        return Response(_with_token(made), status=status.HTTP_201_CREATED)


class ServiceAccountView(APIView):
    @extend_schema(
        operation_id="revoke_service_account",
        tags=["teams"],
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, slug: str, account: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        service_accounts.revoke(actor=actor, team=team, name=account)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RotationView(APIView):
    @extend_schema(
        operation_id="rotate_service_account",
        tags=["teams"],
        request=RotationSerializer,
        responses={201: NewTokenSerializer, **REFUSALS},
    )
    def post(self, request: Request, slug: str, account: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(RotationSerializer, request)
        made = service_accounts.rotate(actor=actor, team=team, name=account, **body)
        return Response(_with_token(made), status=status.HTTP_201_CREATED)


def _with_token(made: NewToken) -> dict[str, object]:
    return {**TokenSerializer(made.row).data, "token": made.plain}
