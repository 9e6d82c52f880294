"""Change requests and rollouts: reading them and deciding on them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import (
    CommentSerializer,
    DecisionSerializer,
    StopReasonSerializer,
)
from deployments.changes.api.serializers import ChangeSerializer
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.services import decisions, recheck
from deployments.preflight.api.serializers import RecheckSerializer
from deployments.states import ChangeState
from portal.accounts.models import User
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

CHANGES = ["change requests"]


class ChangeFilterSerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True)
    state = serializers.ChoiceField(
        choices=[state.value for state in ChangeState], default="", allow_blank=True
    )


class ChangesView(GenericAPIView[Any]):
    serializer_class = ChangeSerializer

    @extend_schema(
        operation_id="list_changes",
        tags=CHANGES,
        parameters=[ChangeFilterSerializer],
        responses={200: ChangeSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(ChangeFilterSerializer, request)
        rows = change_selectors.list_visible_to(
            actor_of(request), team_slug=query["team"], state=query["state"]
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(ChangeSerializer(page, many=True).data)


class ChangeView(APIView):
    @extend_schema(
        operation_id="get_change",
        tags=CHANGES,
        responses={200: ChangeSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, change_id: int) -> Response:
        return _change(actor_of(request), change_id)


class ChangeChecksView(APIView):
    @extend_schema(
        operation_id="check_change",
        tags=CHANGES,
        responses={200: RecheckSerializer, 404: PROBLEM},
        description="Every check with its current result, and which results changed since the request.",
    )
    def get(self, request: Request, change_id: int) -> Response:
        found = recheck.look(actor=actor_of(request), change_id=change_id)
        return Response(RecheckSerializer(found).data)


class ApproveView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="approve_change",
        tags=CHANGES,
        request=DecisionSerializer,
        responses={200: ChangeSerializer, **REFUSALS},
        description="Approve exactly what was shown: evidence_hash is the request's as read.",
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read_body(DecisionSerializer, request)
        decisions.approve(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


class RejectView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="reject_change",
        tags=CHANGES,
        request=CommentSerializer,
        responses={200: ChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read_body(CommentSerializer, request)
        decisions.reject(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


class WithdrawView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="withdraw_change",
        tags=CHANGES,
        request=StopReasonSerializer,
        responses={200: ChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read_body(StopReasonSerializer, request)
        decisions.withdraw(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


def _change(actor: User, change_id: int) -> Response:
    fresh = change_selectors.get_visible(actor=actor, change_id=change_id)
    return Response(ChangeSerializer(fresh).data)
