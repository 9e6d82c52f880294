"""Who I am, my tokens, teams and their members."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import policy, teams, tokens
from portal.accounts.models import User
from portal.api import serializers as shapes
from portal.api.base_serializer import Serializer
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import IdempotentMixin
from portal.core.errors import NotFound

# Its body is added by portal.api.schema.
PROBLEM = OpenApiResponse(None, "A problem, with a stable code")


def actor_of(request: Request) -> User:
    """Every view here is for signed-in people only, so the user is one of ours."""
    return cast("User", request.user)


class MeView(APIView):
    @extend_schema(operation_id="me", tags=["account"], responses=shapes.MeSerializer)
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        mine = [
            {"slug": team.slug, "name": team.name, "role": role}
            for team, role in policy.roles_in_visible_teams(actor)
        ]
        body = {
            "username": actor.username,
            "display_name": actor.display_name,
            "is_platform_admin": actor.is_platform_admin,
            "teams": mine,
        }
        return Response(shapes.MeSerializer(body).data)


# Not repeatable under an Idempotency-Key: the kept answer would hold the token itself.
class TokensView(APIView):
    @extend_schema(
        operation_id="list_tokens",
        tags=["account"],
        responses=shapes.TokenSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = tokens.list_of(actor_of(request))
        return Response(shapes.TokenSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="make_token",
        tags=["account"],
        request=shapes.NewTokenRequestSerializer,
        responses={201: shapes.NewTokenSerializer, 422: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        wanted = read(shapes.NewTokenRequestSerializer, request)
        made = tokens.make(actor=actor_of(request), name=wanted["name"], days=wanted["days"])
        body = {**shapes.TokenSerializer(made.row).data, "token": made.plain}
        return Response(body, status=status.HTTP_201_CREATED)


class TokenView(APIView):
    @extend_schema(
        operation_id="revoke_token", tags=["account"], responses={204: None, 404: PROBLEM}
    )
    def delete(self, request: Request, token_id: int) -> Response:
        tokens.revoke(actor=actor_of(request), token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamsView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_teams", tags=["teams"], responses=shapes.TeamSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        rows = policy.visible_teams(actor_of(request))
        return Response(shapes.TeamSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="create_team",
        tags=["teams"],
        request=shapes.NewTeamSerializer,
        responses={201: shapes.TeamSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        team = teams.create(actor=actor_of(request), **read(shapes.NewTeamSerializer, request))
        return Response(shapes.TeamSerializer(team).data, status=status.HTTP_201_CREATED)


class TeamView(ConditionalMixin, APIView):
    @extend_schema(
        operation_id="get_team",
        tags=["teams"],
        responses={200: shapes.TeamSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        team = teams.get_visible(actor=actor_of(request), slug=slug)
        return Response(shapes.TeamSerializer(team).data)

    @extend_schema(
        operation_id="set_limits",
        tags=["teams"],
        request=shapes.LimitsSerializer,
        responses={200: shapes.TeamSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
    )
    def patch(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        teams.set_limits(actor=actor, team=team, **read(shapes.LimitsSerializer, request))
        return Response(shapes.TeamSerializer(teams.get_visible(actor=actor, slug=slug)).data)


class MembersView(APIView):
    @extend_schema(
        operation_id="list_members",
        tags=["teams"],
        responses={200: shapes.MemberSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = teams.list_members(actor=actor, team=team)
        return Response(shapes.MemberSerializer(rows, many=True).data)


class MemberView(APIView):
    @extend_schema(
        operation_id="set_member",
        tags=["teams"],
        request=shapes.RoleSerializer,
        responses={200: shapes.MemberSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
    )
    def put(self, request: Request, slug: str, username: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        role = read(shapes.RoleSerializer, request)["role"]
        row = teams.set_member(actor=actor, team=team, username=username, role=role)
        return Response(shapes.MemberSerializer(row).data)

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
    """Every address and method under /api/v1/ that nothing else answers."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(f"The API has no resource at {request.path}. See /api/docs.")


def read(shape: type[Serializer], request: Request) -> dict[str, Any]:
    """Raises the framework's ValidationError, which becomes a problem naming the fields."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
