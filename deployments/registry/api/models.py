"""Models and their aliases."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.registry.api.serializers import (
    AliasSerializer,
    DescribeModelSerializer,
    ModelSerializer,
    MoveAliasSerializer,
    NewModelSerializer,
)
from deployments.registry.api.version_filters import format_field, labels_field
from deployments.registry.selectors import model_list, versions
from deployments.registry.selectors.model_list import ModelFilter
from deployments.registry.services import aliases, models
from deployments.states import VersionState
from portal.api.base_serializer import Serializer, choice_of
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["models"]


class ModelFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True, source="team_slug")
    search = serializers.CharField(default="", allow_blank=True, max_length=200)
    task = serializers.CharField(default="", allow_blank=True, max_length=60)
    label = labels_field()  # type: ignore[assignment]  # the name of the parameter
    framework = serializers.CharField(default="", allow_blank=True, max_length=80)
    state = choice_of(VersionState, default="", allow_blank=True)
    format = format_field()


class ModelsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = ModelSerializer

    @extend_schema(
        operation_id="list_models",
        tags=TAGS,
        parameters=[ModelFilterSerializer],
        responses={200: ModelSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(ModelFilterSerializer, request)
        rows = model_list.list_models(actor=actor_of(request), filters=ModelFilter(**query))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(ModelSerializer(page, many=True).data)

    @extend_schema(
        operation_id="create_model",
        tags=TAGS,
        request=NewModelSerializer,
        responses={201: ModelSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        body = read_body(NewModelSerializer, request)
        model = models.create(actor=actor_of(request), team_slug=body.pop("team"), **body)
        return Response(ModelSerializer(model).data, status=status.HTTP_201_CREATED)


class ModelView(ConditionalMixin, APIView):
    @extend_schema(
        operation_id="get_model",
        tags=TAGS,
        responses={200: ModelSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        model = versions.get_model_with_aliases(actor=actor_of(request), team_slug=team, name=name)
        return Response(ModelSerializer(model).data)

    @extend_schema(
        operation_id="describe_model",
        tags=TAGS,
        request=DescribeModelSerializer,
        responses={200: ModelSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
    )
    def patch(self, request: Request, team: str, name: str) -> Response:
        body = read_body(DescribeModelSerializer, request)
        old = versions.get_model(actor=actor_of(request), team_slug=team, name=name)
        model = models.describe(
            actor=actor_of(request),
            team_slug=team,
            name=name,
            description=body.get("description", old.description),
            task=body.get("task", old.task),
        )
        return Response(ModelSerializer(model).data)


class AliasesView(APIView):
    @extend_schema(
        operation_id="list_aliases",
        tags=TAGS,
        responses={200: AliasSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        model = versions.get_model(actor=actor_of(request), team_slug=team, name=name)
        rows = model.aliases.select_related("version")
        return Response(AliasSerializer(rows, many=True).data)


class AliasView(ConditionalMixin, APIView):
    @extend_schema(
        operation_id="get_alias",
        tags=TAGS,
        responses={200: AliasSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, team: str, name: str, alias: str) -> Response:
        row = versions.get_alias(
            actor=actor_of(request), team_slug=team, model_name=name, alias=alias
        )
        return Response(AliasSerializer(row).data)

    @extend_schema(
        operation_id="move_alias",
        tags=TAGS,
        request=MoveAliasSerializer,
        responses={200: AliasSerializer, **REFUSALS},
        description="Point the alias to a version; create it if new.",
    )
    def put(self, request: Request, team: str, name: str, alias: str) -> Response:
        body = read_body(MoveAliasSerializer, request)
        moved = aliases.move(
            actor=actor_of(request),
            team_slug=team,
            model_name=name,
            alias=alias,
            number=body["version"],
            is_protected=body["is_protected"],
        )
        return Response(AliasSerializer(moved).data)

    @extend_schema(
        operation_id="remove_alias",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
        parameters=[OpenApiParameter("alias", str, "path")],
    )
    def delete(self, request: Request, team: str, name: str, alias: str) -> Response:
        aliases.remove(actor=actor_of(request), team_slug=team, model_name=name, alias=alias)
        return Response(status=status.HTTP_204_NO_CONTENT)
