"""Deployments: what is wanted and what is observed, their timeline, and asking for changes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api import delivery_serializers as shapes
from deployments.api.preflight_serializers import PreflightSerializer
from deployments.domain import specs
from deployments.domain.problems import Rejected
from deployments.domain.specs import ServingSpec
from deployments.domain.states import DeploymentState, Environment
from deployments.models import ChangeRequest
from deployments.selectors import changes as change_selectors
from deployments.selectors import deployments
from deployments.services import changes, preflight, stopping
from deployments.services.preflight import DeployDraft
from portal.accounts.models import User
from portal.api.idempotency import IdempotentMixin
from portal.api.pagination import CursorPage
from portal.api.views import PROBLEM, actor_of
from portal.core.errors import Invalid

TAGS = ["deployments"]
REFUSALS = {403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM}


def read(shape: type[shapes.Shape], request: Request) -> dict[str, Any]:
    """The body in that shape; raises a ValidationError that becomes a problem with fields."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data


def spec_of(data: dict[str, Any]) -> ServingSpec:
    try:
        return specs.from_json(data)
    except Rejected as error:
        fields = {f"spec.{name}": words for name, words in error.fields.items()}
        raise Invalid(error.message, fields=fields) from error


def draft_of(body: dict[str, Any]) -> DeployDraft:
    return DeployDraft(
        version_id=body["version_id"],
        cluster_id=body["cluster_id"],
        name=body["name"],
        spec=spec_of(body["spec"]),
        environment=Environment(body["environment"]),
    )


class ListFilterSerializer(shapes.Shape):
    team = serializers.CharField(default="", allow_blank=True)
    state = serializers.ChoiceField(
        choices=[state.value for state in DeploymentState], default="", allow_blank=True
    )
    search = serializers.CharField(default="", allow_blank=True, max_length=80)


class DeploymentsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = shapes.DeploymentSerializer

    @extend_schema(
        operation_id="list_deployments",
        tags=TAGS,
        parameters=[ListFilterSerializer],
        responses={200: shapes.DeploymentSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = ListFilterSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        rows = deployments.list_visible_to(
            actor_of(request),
            team_slug=asked["team"],
            state=asked["state"],
            search=asked["search"],
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(shapes.DeploymentSerializer(page, many=True).data)

    @extend_schema(
        operation_id="request_deployment",
        tags=TAGS,
        request=shapes.NewDeploymentSerializer,
        responses={201: shapes.ChangeSerializer, **REFUSALS},
        description="Ask for a new deployment. The answer is the change request to be approved.",
    )
    def post(self, request: Request) -> Response:
        body = read(shapes.NewDeploymentSerializer, request)
        actor = actor_of(request)
        change = changes.request_deploy(actor=actor, draft=draft_of(body), comment=body["comment"])
        return created(actor, change)


def created(actor: User, change: ChangeRequest) -> Response:
    fresh = change_selectors.get_visible(actor=actor, change_id=change.pk)
    return Response(shapes.ChangeSerializer(fresh).data, status=status.HTTP_201_CREATED)


class PreflightView(APIView):
    @extend_schema(
        operation_id="preflight_deployment",
        tags=TAGS,
        request=shapes.DraftSerializer,
        responses={200: PreflightSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="Every check with its fix, the cost and the manifests. Nothing is written.",
    )
    def post(self, request: Request) -> Response:
        draft = draft_of(read(shapes.DraftSerializer, request))
        found = preflight.check(actor=actor_of(request), draft=draft)
        return Response(PreflightSerializer(found).data)


class DeploymentView(APIView):
    @extend_schema(
        operation_id="get_deployment",
        tags=TAGS,
        responses={200: shapes.DeploymentSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        return Response(shapes.DeploymentSerializer(found).data)


class StopView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="stop_deployment",
        tags=TAGS,
        request=shapes.StopReasonSerializer,
        responses={200: shapes.DeploymentSerializer, **REFUSALS},
        description=(
            "At once and without approval: stopping is always safe. Route and workloads go, the "
            "address answers 404, no GPU is held; revisions stay. Start it again by a change."
        ),
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body, actor = read(shapes.StopReasonSerializer, request), actor_of(request)
        stopping.stop(actor=actor, deployment_id=deployment_id, **body)
        found = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(shapes.DeploymentSerializer(found).data)


class RevisionsView(APIView):
    @extend_schema(
        operation_id="list_revisions",
        tags=TAGS,
        responses={200: shapes.RevisionSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        rows = deployments.history_of(found)
        return Response(shapes.RevisionSerializer(rows, many=True).data)


class DeploymentEventsView(GenericAPIView[Any]):
    serializer_class = shapes.DeploymentEventSerializer
    pagination_class = CursorPage

    @extend_schema(
        operation_id="list_deployment_events",
        tags=TAGS,
        responses={200: shapes.DeploymentEventSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        page = self.paginate_queryset(deployments.events_of(found))
        return self.get_paginated_response(shapes.DeploymentEventSerializer(page, many=True).data)
