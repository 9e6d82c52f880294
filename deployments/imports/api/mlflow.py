"""MLflow servers: their registered models and versions, to import from."""

from __future__ import annotations

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.imports.api.serializers import (
    MlflowModelFilterSerializer,
    MlflowModelsSerializer,
    MlflowServerSerializer,
    MlflowVersionFilterSerializer,
    MlflowVersionsSerializer,
)
from deployments.imports.selectors import mlflow_models
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM

TAGS = ["imports"]
_REFUSALS = {403: PROBLEM, 404: PROBLEM, 422: PROBLEM, 503: PROBLEM}


class ServersView(APIView):
    @extend_schema(
        operation_id="list_mlflow_servers",
        tags=TAGS,
        responses={200: MlflowServerSerializer(many=True)},
        description="The tracking servers that this installation imports from; none for a person who may "
        "upload into no team.",
    )
    def get(self, request: Request) -> Response:
        servers = mlflow_models.list_servers(actor=actor_of(request))
        rows = [{"name": name, "address": address} for name, address in servers.items()]
        return Response(MlflowServerSerializer(rows, many=True).data)


class MlflowModelsView(APIView):
    @extend_schema(
        operation_id="list_mlflow_models",
        tags=TAGS,
        parameters=[MlflowModelFilterSerializer],
        responses={200: MlflowModelsSerializer, **_REFUSALS},
        description="Registered models of an MLflow server, by name. Read from the server now.",
    )
    def get(self, request: Request, server: str) -> Response:
        query = read_query(MlflowModelFilterSerializer, request)
        page = mlflow_models.search_models(
            actor=actor_of(request), server=server, text=query["search"], page=query["page"]
        )
        return Response(MlflowModelsSerializer(page).data)


class MlflowVersionsView(APIView):
    @extend_schema(
        operation_id="list_mlflow_versions",
        tags=TAGS,
        parameters=[MlflowVersionFilterSerializer],
        responses={200: MlflowVersionsSerializer, **_REFUSALS},
        description="Versions of a registered model, newest first. Import one by its address.",
    )
    def get(self, request: Request, server: str) -> Response:
        query = read_query(MlflowVersionFilterSerializer, request)
        page = mlflow_models.list_versions(actor=actor_of(request), server=server, **query)
        return Response(MlflowVersionsSerializer(page).data)


urlpatterns: list[URLPattern] = [
    path("mlflow-servers", ServersView.as_view(), name="mlflow-servers"),
    path("mlflow-servers/<slug:server>/models", MlflowModelsView.as_view(), name="mlflow-models"),
    path(
        "mlflow-servers/<slug:server>/versions",
        MlflowVersionsView.as_view(),
        name="mlflow-versions",
    ),
]
