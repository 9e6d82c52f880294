"""Pipelines: several deployments of a team behind one address. Reading and requesting them."""

from __future__ import annotations

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import CommentSerializer, StopReasonSerializer
from deployments.changes.selectors import changes
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.api.serializers import (
    ChangedPipelineSerializer,
    NewPipelineSerializer,
    PipelineChangeSerializer,
    PipelineDraftSerializer,
    PipelineExaminedSerializer,
    PipelineFilterSerializer,
    PipelineSerializer,
)
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import requests, stop
from deployments.pipelines.services.requests import PipelineDraft
from deployments.states import Environment
from portal.accounts.models import User
from portal.api.actions import action
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["pipelines"]
_SPEC = ("nodes", "min_replicas", "max_replicas")


class PipelinesView(IdempotentMixin, GenericAPIView[Any]):
    serializer_class = PipelineSerializer

    @extend_schema(
        operation_id="list_pipelines",
        tags=TAGS,
        parameters=[PipelineFilterSerializer],
        responses={200: PipelineSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(PipelineFilterSerializer, request)
        rows = selectors.list_visible_to(actor_of(request), team_slug=query["team"] or None)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(PipelineSerializer(page, many=True).data)

    @extend_schema(
        operation_id="request_pipeline",
        tags=TAGS,
        request=NewPipelineSerializer,
        responses={201: PipelineChangeSerializer, **REFUSALS},
        description=(
            "Request one address that calls several deployments. Every step gets the "
            "client's own request: KServe cannot feed one model's answer into the next, a Triton "
            "ensemble can."
        ),
    )
    def post(self, request: Request) -> Response:
        body, actor = read_body(NewPipelineSerializer, request), actor_of(request)
        change = requests.request_create(
            actor=actor, draft=_draft(request, body), comment=body["comment"]
        )
        return _created(actor, change)


class PipelinePreviewView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="preview_pipeline",
        tags=TAGS,
        request=PipelineDraftSerializer,
        responses={200: PipelineExaminedSerializer, **REFUSALS},
        description="The checks of a request, and the manifests, without making one.",
    )
    def post(self, request: Request) -> Response:
        body = read_body(PipelineDraftSerializer, request)
        examined = requests.preview(actor=actor_of(request), draft=_draft(request, body))
        return Response(PipelineExaminedSerializer(examined).data)


class PipelineView(APIView):
    @extend_schema(
        operation_id="get_pipeline",
        tags=TAGS,
        responses={200: PipelineSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, pipeline_id: int) -> Response:
        pipeline = selectors.get_visible_by_id(actor=actor_of(request), pipeline_id=pipeline_id)
        return Response(PipelineSerializer(pipeline).data)

    @extend_schema(
        operation_id="request_pipeline_change",
        tags=TAGS,
        request=ChangedPipelineSerializer,
        responses={201: PipelineChangeSerializer, **REFUSALS},
        description="Request different steps behind the same address.",
    )
    def put(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(ChangedPipelineSerializer, request), actor_of(request)
        change = requests.request_change(
            actor=actor, pipeline_id=pipeline_id, spec=_spec(request), comment=body["comment"]
        )
        return _created(actor, change)


def _read_again(actor: User, change: ChangeRequest) -> ChangeRequest:
    return changes.get_visible(actor=actor, change_id=change.pk, about=Pipeline)


_request = partial(
    action,
    tags=TAGS,
    body=CommentSerializer,
    shown_by=PipelineChangeSerializer,
    show=_read_again,
    status=status.HTTP_201_CREATED,
)

RetirePipelineView = _request(
    requests.request_retire,
    operation_id="request_pipeline_retirement",
    description="Request removal of the address and its router; the deployments stay.",
)
RequestPipelineStopView = _request(
    requests.request_stop,
    operation_id="request_pipeline_stop",
    description="Request a stop, which takes effect once it is approved.",
)
StartPipelineView = _request(
    requests.request_start,
    operation_id="request_pipeline_start",
    description="Request the start of a stopped pipeline, with the same steps.",
)
StopPipelineView = action(
    stop.stop,
    operation_id="stop_pipeline",
    tags=TAGS,
    body=StopReasonSerializer,
    shown_by=PipelineSerializer,
    show=lambda actor, stopped: selectors.get_visible_by_id(actor=actor, pipeline_id=stopped.pk),
    description=(
        "Takes effect at once; the deployments behind it keep serving. A production pipeline "
        "that has served cannot be stopped here (403, approval_required): request its stop, "
        "which needs approval."
    ),
)


def _draft(request: Request, body: dict[str, Any]) -> PipelineDraft:
    return PipelineDraft(
        team=body["team"],
        cluster_id=body["cluster_id"],
        environment=Environment(body["environment"]),
        name=body["name"],
        spec=_spec(request),
    )


def _spec(request: Request) -> dict[str, Any]:
    """Return the spec as it was sent. The domain refuses unknown fields, for example a chain of answers."""
    body = dict(request.data)
    return {name: body[name] for name in _SPEC if name in body}


def _created(actor: User, change: ChangeRequest) -> Response:
    body = PipelineChangeSerializer(_read_again(actor, change)).data
    return Response(body, status=status.HTTP_201_CREATED)
