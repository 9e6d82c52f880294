"""Pipelines: several deployments of a team behind one address. Reading and requesting them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_view
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


class _RequestView(IdempotentMixin, APIView):
    send: ClassVar[Callable[..., ChangeRequest]]

    def post(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(CommentSerializer, request), actor_of(request)
        return _created(actor, self.send(actor=actor, pipeline_id=pipeline_id, **body))


def _request_schema(operation_id: str, description: str) -> Any:
    return extend_schema_view(
        post=extend_schema(
            operation_id=operation_id,
            tags=TAGS,
            request=CommentSerializer,
            responses={201: PipelineChangeSerializer, **REFUSALS},
            description=description,
        )
    )


@_request_schema(
    "request_pipeline_retirement",
    "Request removal of the address and its router; the deployments stay.",
)
class RetirePipelineView(_RequestView):
    send = staticmethod(requests.request_retire)


@_request_schema("request_pipeline_stop", "Request a stop, which takes effect once it is approved.")
class RequestPipelineStopView(_RequestView):
    send = staticmethod(requests.request_stop)


@_request_schema(
    "request_pipeline_start", "Request the start of a stopped pipeline, with the same steps."
)
class StartPipelineView(_RequestView):
    send = staticmethod(requests.request_start)


class StopPipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="stop_pipeline",
        tags=TAGS,
        request=StopReasonSerializer,
        responses={200: PipelineSerializer, **REFUSALS},
        description=(
            "Takes effect at once; the deployments behind it keep serving. A production pipeline "
            "that has served cannot be stopped here (403, approval_required): request its stop, "
            "which needs approval."
        ),
    )
    def post(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(StopReasonSerializer, request), actor_of(request)
        stop.stop(actor=actor, pipeline_id=pipeline_id, **body)
        pipeline = selectors.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
        return Response(PipelineSerializer(pipeline).data)


def _draft(request: Request, body: dict[str, Any]) -> PipelineDraft:
    return PipelineDraft(
        team=body["team"],
        cluster_id=body["cluster_id"],
        environment=Environment(body["environment"]),
        name=body["name"],
        spec=_spec(request),
    )


def _spec(request: Request) -> dict[str, Any]:
    """Unread: the domain refuses unknown fields, for example a chain of answers."""
    body = dict(request.data)
    return {name: body[name] for name in _SPEC if name in body}


def _created(actor: User, change: ChangeRequest) -> Response:
    fresh = changes.get_visible(actor=actor, change_id=change.pk, about=Pipeline)
    body = PipelineChangeSerializer(fresh).data
    return Response(body, status=status.HTTP_201_CREATED)
