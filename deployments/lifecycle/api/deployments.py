"""Deployments: what is wanted and what is observed, their timeline, and asking for changes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api import serializers as approval_serializers
from deployments.changes.api import serializers as shapes
from deployments.changes.api.drafts import created, draft_of
from deployments.changes.services import decisions
from deployments.lifecycle.services import stop
from deployments.preflight.api.serializers import PreflightSerializer
from deployments.preflight.services import preflight
from deployments.serving.api import serializers as serving_serializers
from deployments.serving.api.serializers import TAGS
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState
from portal.api.base_serializer import Serializer
from portal.api.bodies import read
from portal.api.idempotency import IdempotentMixin
from portal.api.pagination import CursorPage
from portal.api.refusals import REFUSALS
from portal.api.views import PROBLEM, actor_of


class ListFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = serializers.ChoiceField(
        choices=[state.value for state in DeploymentState], default="", allow_blank=True
    )
    search = serializers.CharField(default="", allow_blank=True, max_length=80)


class DeploymentsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = serving_serializers.DeploymentSerializer

    @extend_schema(
        operation_id="list_deployments",
        tags=TAGS,
        parameters=[ListFilterSerializer],
        responses={200: serving_serializers.DeploymentSerializer(many=True), 422: PROBLEM},
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
        return self.get_paginated_response(
            serving_serializers.DeploymentSerializer(page, many=True).data
        )

    @extend_schema(
        operation_id="request_deployment",
        tags=TAGS,
        request=shapes.NewDeploymentSerializer,
        responses={201: shapes.ChangeSerializer, **REFUSALS},
        description="Request a new deployment. The response is the change request to be approved.",
    )
    def post(self, request: Request) -> Response:
        body = read(shapes.NewDeploymentSerializer, request)
        actor = actor_of(request)
        change = decisions.request_deploy(
            actor=actor, draft=draft_of(body), comment=body["comment"]
        )
        return created(actor, change)


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
        responses={200: serving_serializers.DeploymentSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        return Response(serving_serializers.DeploymentSerializer(found).data)


class StopView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="stop_deployment",
        tags=TAGS,
        request=approval_serializers.StopReasonSerializer,
        responses={200: serving_serializers.DeploymentSerializer, **REFUSALS},
        description=(
            "Takes effect at once: the route and workloads are removed, the address returns 404 "
            "and GPUs are released. Revisions stay; a start change starts it again. A production "
            "deployment cannot be stopped here (403, approval_required): request a change of "
            "kind stop, which needs approval."
        ),
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        body, actor = read(approval_serializers.StopReasonSerializer, request), actor_of(request)
        stop.stop(actor=actor, deployment_id=deployment_id, **body)
        found = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(serving_serializers.DeploymentSerializer(found).data)


class RevisionsView(APIView):
    @extend_schema(
        operation_id="list_revisions",
        tags=TAGS,
        responses={200: serving_serializers.RevisionSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        rows = deployments.history_of(found)
        return Response(serving_serializers.RevisionSerializer(rows, many=True).data)


class DeploymentEventsView(GenericAPIView[Any]):
    serializer_class = serving_serializers.DeploymentEventSerializer
    pagination_class = CursorPage

    @extend_schema(
        operation_id="list_deployment_events",
        tags=TAGS,
        responses={200: serving_serializers.DeploymentEventSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        page = self.paginate_queryset(deployments.events_of(found))
        return self.get_paginated_response(
            serving_serializers.DeploymentEventSerializer(page, many=True).data
        )
