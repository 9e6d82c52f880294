"""Change requests and rollouts: reading them and deciding on them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api import delivery_serializers as shapes
from deployments.api.delivery import REFUSALS, read
from deployments.api.preflight_serializers import RecheckSerializer
from deployments.api.rollout_serializers import RolloutSerializer
from deployments.domain.states import ChangeState
from deployments.models import Rollout
from deployments.selectors import changes as change_selectors
from deployments.selectors import rollouts as rollout_selectors
from deployments.services import changes, rechecks, rollouts
from portal.accounts.models import User
from portal.api.idempotency import IdempotentMixin
from portal.api.views import PROBLEM, actor_of

CHANGES = ["change requests"]
ROLLOUTS = ["rollouts"]


class ChangeFilterSerializer(shapes.Shape):
    team = serializers.CharField(default="", allow_blank=True)
    state = serializers.ChoiceField(
        choices=[state.value for state in ChangeState], default="", allow_blank=True
    )


class ChangesView(GenericAPIView[Any]):
    serializer_class = shapes.ChangeSerializer

    @extend_schema(
        operation_id="list_changes",
        tags=CHANGES,
        parameters=[ChangeFilterSerializer],
        responses={200: shapes.ChangeSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = ChangeFilterSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        rows = change_selectors.list_visible_to(
            actor_of(request), team_slug=asked["team"], state=asked["state"]
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(shapes.ChangeSerializer(page, many=True).data)


class ChangeView(APIView):
    @extend_schema(
        operation_id="get_change",
        tags=CHANGES,
        responses={200: shapes.ChangeSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, change_id: int) -> Response:
        return _change(actor_of(request), change_id)


class ChangeChecksView(APIView):
    @extend_schema(
        operation_id="check_change",
        tags=CHANGES,
        responses={200: RecheckSerializer, 404: PROBLEM},
        description="Every check as it comes out now, and which of them have turned since.",
    )
    def get(self, request: Request, change_id: int) -> Response:
        found = rechecks.look(actor=actor_of(request), change_id=change_id)
        return Response(RecheckSerializer(found).data)


class ApproveView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="approve_change",
        tags=CHANGES,
        request=shapes.DecisionSerializer,
        responses={200: shapes.ChangeSerializer, **REFUSALS},
        description="Approve exactly what was shown: evidence_hash is the request's as read.",
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read(shapes.DecisionSerializer, request)
        changes.approve(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


class RejectView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="reject_change",
        tags=CHANGES,
        request=shapes.CommentSerializer,
        responses={200: shapes.ChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read(shapes.CommentSerializer, request)
        changes.reject(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


class WithdrawView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="withdraw_change",
        tags=CHANGES,
        request=shapes.StopReasonSerializer,
        responses={200: shapes.ChangeSerializer, **REFUSALS},
    )
    def post(self, request: Request, change_id: int) -> Response:
        body = read(shapes.StopReasonSerializer, request)
        changes.withdraw(actor=actor_of(request), change_id=change_id, **body)
        return _change(actor_of(request), change_id)


class RolloutView(APIView):
    @extend_schema(
        operation_id="get_rollout",
        tags=ROLLOUTS,
        responses={200: RolloutSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, rollout_id: int) -> Response:
        return _rollout(actor_of(request), rollout_id)


class PromoteView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="promote_rollout",
        tags=ROLLOUTS,
        request=shapes.EvidenceSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="To the next step. Refused when a verdict has turned since it was shown.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read(shapes.EvidenceSerializer, request)
        return _after(
            request, rollouts.promote(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class PromoteFullyView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="promote_rollout_fully",
        tags=ROLLOUTS,
        request=shapes.EvidenceSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="All requests at once. Refused while a guard fails.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read(shapes.EvidenceSerializer, request)
        return _after(
            request, rollouts.promote_fully(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class PauseView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="pause_rollout",
        tags=ROLLOUTS,
        request=shapes.StopReasonSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read(shapes.StopReasonSerializer, request)
        return _after(
            request, rollouts.pause(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class UnpauseView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="unpause_rollout",
        tags=ROLLOUTS,
        request=None,
        responses={200: RolloutSerializer, **REFUSALS},
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        return _after(request, rollouts.unpause(actor=actor_of(request), rollout_id=rollout_id))


class AbortView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="abort_rollout",
        tags=ROLLOUTS,
        request=shapes.StopReasonSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="All requests back to stable. Legal until the rollout has finished.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read(shapes.StopReasonSerializer, request)
        return _after(
            request, rollouts.abort(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


def _change(actor: User, change_id: int) -> Response:
    fresh = change_selectors.get_visible(actor=actor, change_id=change_id)
    return Response(shapes.ChangeSerializer(fresh).data)


def _after(request: Request, rollout: Rollout) -> Response:
    return _rollout(actor_of(request), rollout.pk)


def _rollout(actor: User, rollout_id: int) -> Response:
    found = rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)
    view = rollout_selectors.view_of(actor=actor, rollout=found)
    return Response(RolloutSerializer(view).data)
