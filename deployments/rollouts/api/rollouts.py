"""Rollouts in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import StopReasonSerializer
from deployments.models import Rollout
from deployments.rollouts.api.serializers import EvidenceSerializer, RolloutSerializer
from deployments.rollouts.selectors import rollouts as rollout_selectors
from deployments.rollouts.services import actions
from portal.accounts.models import User
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

ROLLOUTS = ["rollouts"]


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
        request=EvidenceSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="To the next step. Refused when a verdict has changed since it was shown.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read_body(EvidenceSerializer, request)
        return _after(
            request, actions.promote(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class PromoteFullyView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="promote_rollout_fully",
        tags=ROLLOUTS,
        request=EvidenceSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="All requests at once. Refused while a guard fails.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read_body(EvidenceSerializer, request)
        return _after(
            request, actions.promote_fully(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class PauseView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="pause_rollout",
        tags=ROLLOUTS,
        request=StopReasonSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read_body(StopReasonSerializer, request)
        return _after(
            request, actions.pause(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


class UnpauseView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="unpause_rollout",
        tags=ROLLOUTS,
        request=None,
        responses={200: RolloutSerializer, **REFUSALS},
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        return _after(request, actions.unpause(actor=actor_of(request), rollout_id=rollout_id))


class AbortView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="abort_rollout",
        tags=ROLLOUTS,
        request=StopReasonSerializer,
        responses={200: RolloutSerializer, **REFUSALS},
        description="Sends all requests back to stable. Allowed until the rollout has finished.",
    )
    def post(self, request: Request, rollout_id: int) -> Response:
        body = read_body(StopReasonSerializer, request)
        return _after(
            request, actions.abort(actor=actor_of(request), rollout_id=rollout_id, **body)
        )


def _after(request: Request, rollout: Rollout) -> Response:
    return _rollout(actor_of(request), rollout.pk)


def _rollout(actor: User, rollout_id: int) -> Response:
    found = rollout_selectors.get_visible(actor=actor, rollout_id=rollout_id)
    view = rollout_selectors.view_of(actor=actor, rollout=found)
    return Response(RolloutSerializer(view).data)
