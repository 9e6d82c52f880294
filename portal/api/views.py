"""The signed-in user, their tokens, teams and members in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import policy, teams, tokens
from portal.accounts.scopes import Scope, TokenGrant
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM
from portal.api.serializers import (
    LimitsSerializer,
    MemberSerializer,
    MeSerializer,
    NewTeamSerializer,
    NewTokenRequestSerializer,
    NewTokenSerializer,
    RoleSerializer,
    TeamSerializer,
    TokenSerializer,
)
from portal.core.errors import NotFound


class MeView(APIView):
    @extend_schema(operation_id="me", tags=["account"], responses=MeSerializer)
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        own_teams = [
            {"slug": team.slug, "name": team.name, "role": role}
            for team, role in policy.roles_in_visible_teams(actor)
        ]
        body = {
            "username": actor.username,
            "display_name": actor.display_name,
            "is_platform_admin": actor.is_platform_admin,
            "is_service_account": actor.is_service_account,
            "teams": own_teams,
            "token": _described(actor.grant),
        }
        return Response(MeSerializer(body).data)


def _described(grant: TokenGrant | None) -> dict[str, Any] | None:
    if grant is None:
        return None
    held = [scope.value for scope in Scope if scope in grant.scopes]
    return {"name": grant.name, "scopes": held, "expires_at": grant.expires_at}


# Without Idempotency-Key: the recorded response would contain the token.
class TokensView(APIView):
    @extend_schema(
        operation_id="list_tokens",
        tags=["account"],
        responses=TokenSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = tokens.list_tokens(actor_of(request))
        return Response(TokenSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="make_token",
        tags=["account"],
        request=NewTokenRequestSerializer,
        responses={201: NewTokenSerializer, 404: PROBLEM, 422: PROBLEM},
        description="A browser session is required: a token cannot create tokens.",
    )
    def post(self, request: Request) -> Response:
        body = read_body(NewTokenRequestSerializer, request)
        token = tokens.create(
            actor=actor_of(request),
            name=body["name"],
            days=body["days"],
            scopes=body["scopes"],
            team_slug=body["team"],
            requests_per_minute=body["requests_per_minute"],
        )
        created = {**TokenSerializer(token.row).data, "token": token.plain}
        return Response(created, status=status.HTTP_201_CREATED)


class TokenView(APIView):
    @extend_schema(
        operation_id="revoke_token", tags=["account"], responses={204: None, 404: PROBLEM}
    )
    def delete(self, request: Request, token_id: int) -> Response:
        tokens.revoke(actor=actor_of(request), token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamsView(IdempotentMixin, APIView):
    @extend_schema(operation_id="list_teams", tags=["teams"], responses=TeamSerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = policy.visible_teams(actor_of(request))
        return Response(TeamSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="create_team",
        tags=["teams"],
        request=NewTeamSerializer,
        responses={201: TeamSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        team = teams.create(actor=actor_of(request), **read_body(NewTeamSerializer, request))
        return Response(TeamSerializer(team).data, status=status.HTTP_201_CREATED)


class TeamView(ConditionalMixin, APIView):
    @extend_schema(
        operation_id="get_team",
        tags=["teams"],
        responses={200: TeamSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        team = teams.get_visible(actor=actor_of(request), slug=slug)
        return Response(TeamSerializer(team).data)

    @extend_schema(
        operation_id="set_limits",
        tags=["teams"],
        request=LimitsSerializer,
        responses={200: TeamSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
    )
    def patch(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        teams.set_limits(actor=actor, team=team, **read_body(LimitsSerializer, request))
        return Response(TeamSerializer(teams.get_visible(actor=actor, slug=slug)).data)


class MembersView(APIView):
    @extend_schema(
        operation_id="list_members",
        tags=["teams"],
        responses={200: MemberSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = teams.list_members(actor=actor, team=team)
        return Response(MemberSerializer(rows, many=True).data)


class MemberView(APIView):
    @extend_schema(
        operation_id="set_member",
        tags=["teams"],
        request=RoleSerializer,
        responses={200: MemberSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
    )
    def put(self, request: Request, slug: str, username: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        role = read_body(RoleSerializer, request)["role"]
        row = teams.set_member(actor=actor, team=team, username=username, role=role)
        return Response(MemberSerializer(row).data)

    @extend_schema(
        operation_id="remove_member",
        tags=["teams"],
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        teams.remove_member(actor=actor, team=team, username=username)
        return Response(status=status.HTTP_204_NO_CONTENT)


class UnknownView(APIView):
    """Every unknown address under /api/v1/."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(f"The API has no resource at {request.path}. See /docs/api.")
