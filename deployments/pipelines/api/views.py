"""Pipelines: several deployments of a team behind one address, asked for, approved and read."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import (
    CommentSerializer,
    DecisionSerializer,
    StopReasonSerializer,
)
from deployments.models import PipelineChange
from deployments.pipelines.api.serializers import (
    ChangedPipelineSerializer,
    NewPipelineSerializer,
    PipelineChangeFilterSerializer,
    PipelineChangeSerializer,
    PipelineDraftSerializer,
    PipelineExaminedSerializer,
    PipelineFilterSerializer,
    PipelineSerializer,
)
from deployments.pipelines.selectors import pipelines as selectors
from deployments.pipelines.services import decisions, requests, stop
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
        found = requests.preview(actor=actor_of(request), draft=_draft(request, body))
        return Response(PipelineExaminedSerializer(found).data)


class PipelineView(APIView):
    @extend_schema(
        operation_id="get_pipeline",
        tags=TAGS,
        responses={200: PipelineSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, pipeline_id: int) -> Response:
        found = selectors.get_visible_by_id(actor=actor_of(request), pipeline_id=pipeline_id)
        return Response(PipelineSerializer(found).data)

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


class RetirePipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="request_pipeline_retirement",
        tags=TAGS,
        request=CommentSerializer,
        responses={201: PipelineChangeSerializer, **REFUSALS},
        description="Request removal of the address and its router; the deployments stay.",
    )
    def post(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(CommentSerializer, request), actor_of(request)
        change = requests.request_retire(actor=actor, pipeline_id=pipeline_id, **body)
        return _created(actor, change)


class StopPipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="stop_pipeline",
        tags=TAGS,
        request=StopReasonSerializer,
        responses={200: PipelineSerializer, **REFUSALS},
        description="Takes effect at once, without approval. The deployments behind it keep serving.",
    )
    def post(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(StopReasonSerializer, request), actor_of(request)
        stop.stop(actor=actor, pipeline_id=pipeline_id, **body)
        found = selectors.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
        return Response(PipelineSerializer(found).data)


class StartPipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="request_pipeline_start",
        tags=TAGS,
        request=CommentSerializer,
        responses={201: PipelineChangeSerializer, **REFUSALS},
        description="Request the start of a stopped pipeline, with the same steps.",
    )
    def post(self, request: Request, pipeline_id: int) -> Response:
        body, actor = read_body(CommentSerializer, request), actor_of(request)
        change = requests.request_start(actor=actor, pipeline_id=pipeline_id, **body)
        return _created(actor, change)


class PipelineChangesView(GenericAPIView[Any]):
    serializer_class = PipelineChangeSerializer

    @extend_schema(
        operation_id="list_pipeline_changes",
        tags=TAGS,
        parameters=[PipelineChangeFilterSerializer],
        responses={200: PipelineChangeSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(PipelineChangeFilterSerializer, request)
        rows = selectors.list_changes(actor_of(request), state=query["state"])
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(PipelineChangeSerializer(page, many=True).data)


class PipelineChangeView(APIView):
    @extend_schema(
        operation_id="get_pipeline_change",
        tags=TAGS,
        responses={200: PipelineChangeSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, pipeline_change_id: int) -> Response:
        return Response(_change(actor_of(request), pipeline_change_id))


class ApprovePipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="approve_pipeline_change",
        tags=TAGS,
        request=DecisionSerializer,
        responses={200: PipelineChangeSerializer, **REFUSALS},
        description="Approve exactly what was shown: evidence_hash is the request's as read.",
    )
    def post(self, request: Request, pipeline_change_id: int) -> Response:
        body, actor = read_body(DecisionSerializer, request), actor_of(request)
        decisions.approve(actor=actor, change_id=pipeline_change_id, **body)
        return Response(_change(actor, pipeline_change_id))


class RejectPipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="reject_pipeline_change",
        tags=TAGS,
        request=CommentSerializer,
        responses={200: PipelineChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, pipeline_change_id: int) -> Response:
        body, actor = read_body(CommentSerializer, request), actor_of(request)
        decisions.reject(actor=actor, change_id=pipeline_change_id, **body)
        return Response(_change(actor, pipeline_change_id))


class WithdrawPipelineView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="withdraw_pipeline_change",
        tags=TAGS,
        request=StopReasonSerializer,
        responses={200: PipelineChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, pipeline_change_id: int) -> Response:
        body, actor = read_body(StopReasonSerializer, request), actor_of(request)
        decisions.withdraw(actor=actor, change_id=pipeline_change_id, **body)
        return Response(_change(actor, pipeline_change_id))


def _draft(request: Request, body: dict[str, Any]) -> PipelineDraft:
    return PipelineDraft(
        team=body["team"],
        cluster_id=body["cluster_id"],
        environment=Environment(body["environment"]),
        name=body["name"],
        spec=_spec(request),
    )


def _spec(request: Request) -> dict[str, Any]:
    """As it came: the domain refuses what it does not know, for example a chain of answers."""
    came = dict(request.data)
    return {name: came[name] for name in _SPEC if name in came}


def _created(actor: User, change: PipelineChange) -> Response:
    return Response(_change(actor, change.pk), status=status.HTTP_201_CREATED)


def _change(actor: User, change_id: int) -> Any:
    found = selectors.get_change(actor=actor, change_id=change_id)
    return PipelineChangeSerializer(found).data
