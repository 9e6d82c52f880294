"""Deployments: desired and observed state, their timeline, and requesting changes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import StopReasonSerializer
from deployments.changes.api.drafts import draft_of, respond_created
from deployments.changes.api.presets import read_draft
from deployments.changes.api.serializers import (
    ChangeSerializer,
    DraftSerializer,
    NewDeploymentSerializer,
)
from deployments.changes.services import requests
from deployments.lifecycle.services import stop
from deployments.preflight.api.serializers import PreflightSerializer
from deployments.serving.api.serializers import (
    TAGS,
    DeploymentEventSerializer,
    DeploymentSerializer,
    ListedRevisionSerializer,
)
from deployments.serving.selectors import deployments, revision_roles, timeline
from deployments.states import DeploymentState
from portal.api.actions import action
from portal.api.base_serializer import Serializer, choice_of
from portal.api.idempotency import IdempotentMixin
from portal.api.pagination import CursorPage
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM, REFUSALS


class ListFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = choice_of(DeploymentState, default="", allow_blank=True)
    search = serializers.CharField(default="", allow_blank=True, max_length=80)


class DeploymentsView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = DeploymentSerializer

    @extend_schema(
        operation_id="list_deployments",
        tags=TAGS,
        parameters=[ListFilterSerializer],
        responses={200: DeploymentSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(ListFilterSerializer, request)
        rows = deployments.list_visible_to(
            actor_of(request),
            team_slug=query["team"],
            state=query["state"],
            search=query["search"],
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(DeploymentSerializer(page, many=True).data)

    @extend_schema(
        operation_id="request_deployment",
        tags=TAGS,
        request=NewDeploymentSerializer,
        responses={201: ChangeSerializer, **REFUSALS},
        description="Request a new deployment. The response is the change request to be approved. With "
        "`replaces_id` it is sent in the place of an earlier request of yours.",
    )
    def post(self, request: Request) -> Response:
        body = read_draft(NewDeploymentSerializer, request)
        actor = actor_of(request)
        change = requests.request_deploy(
            actor=actor,
            draft=draft_of(body),
            comment=body["comment"],
            replaces_id=body["replaces_id"],
        )
        return respond_created(actor, change)


class PreflightView(APIView):
    @extend_schema(
        operation_id="preflight_deployment",
        tags=TAGS,
        request=DraftSerializer,
        responses={200: PreflightSerializer, 403: PROBLEM, 404: PROBLEM, 422: PROBLEM},
        description="Every check with its fix, the cost and the manifests. Nothing is written.",
    )
    def post(self, request: Request) -> Response:
        body = read_draft(DraftSerializer, request)
        checked = requests.check_deploy(
            actor=actor_of(request), draft=draft_of(body), replaces_id=body["replaces_id"]
        )
        return Response(PreflightSerializer(checked).data)


class DeploymentView(APIView):
    @extend_schema(
        operation_id="get_deployment",
        tags=TAGS,
        responses={200: DeploymentSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        deployment = deployments.get_visible_by_id(
            actor=actor_of(request), deployment_id=deployment_id
        )
        return Response(DeploymentSerializer(deployment).data)


StopView = action(
    stop.stop,
    operation_id="stop_deployment",
    tags=TAGS,
    body=StopReasonSerializer,
    shown_by=DeploymentSerializer,
    show=lambda actor, stopped: deployments.get_visible_by_id(
        actor=actor, deployment_id=stopped.pk
    ),
    description=(
        "Takes effect at once: the route and workloads are removed, the address returns 404 "
        "and GPUs are released. Revisions stay; a start change starts it again. A production "
        "deployment cannot be stopped here (403, approval_required): request a change of "
        "kind stop, which needs approval."
    ),
)


class RevisionsView(APIView):
    @extend_schema(
        operation_id="list_revisions",
        tags=TAGS,
        responses={200: ListedRevisionSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        deployment = deployments.get_visible_by_id(
            actor=actor_of(request), deployment_id=deployment_id
        )
        rows = deployments.history_of(deployment)
        context = {"roles": revision_roles.roles_of(deployment)}
        return Response(ListedRevisionSerializer(rows, many=True, context=context).data)


class DeploymentEventsView(GenericAPIView[Any]):
    serializer_class = DeploymentEventSerializer
    pagination_class = CursorPage

    @extend_schema(
        operation_id="list_deployment_events",
        tags=TAGS,
        responses={200: DeploymentEventSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        deployment = deployments.get_visible_by_id(
            actor=actor_of(request), deployment_id=deployment_id
        )
        page = self.paginate_queryset(timeline.list_events(deployment))
        return self.get_paginated_response(DeploymentEventSerializer(page, many=True).data)
