"""Rules of approval, approving past them in an emergency, and the reviews of that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api import approval_serializers as shapes
from deployments.api import delivery_serializers
from deployments.api.delivery import REFUSALS, read
from deployments.models import ApprovalRule
from deployments.selectors import approvals as approval_selectors
from deployments.selectors import changes as change_selectors
from deployments.selectors import emergencies as review_selectors
from deployments.services import emergencies, policies
from deployments.services.policies import RuleDraft
from portal.accounts import policy
from portal.api.idempotency import IdempotentMixin
from portal.api.views import PROBLEM, actor_of

TAGS = ["approvals"]


class RulesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_approval_rules",
        tags=TAGS,
        responses=shapes.RuleSerializer(many=True),
        description=(
            "Those of your teams and of all teams. Besides them every change needs one lead or "
            "platform admin who did not ask for it."
        ),
    )
    def get(self, request: Request) -> Response:
        rows = approval_selectors.list_rules(actor_of(request))
        return Response([_told(row) for row in rows])

    @extend_schema(
        operation_id="make_approval_rule",
        tags=TAGS,
        request=shapes.RuleSerializer,
        responses={201: shapes.RuleSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        row = policies.make(actor=actor, draft=_draft(read(shapes.RuleSerializer, request)))
        return Response(_told(row), status=status.HTTP_201_CREATED)


class RuleView(APIView):
    @extend_schema(
        operation_id="change_approval_rule",
        tags=TAGS,
        request=shapes.RuleSerializer,
        responses={200: shapes.RuleSerializer, **REFUSALS},
        description="Approvals given under the earlier wording become void where it applies.",
    )
    def put(self, request: Request, rule_id: int) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        draft = _draft(read(shapes.RuleSerializer, request))
        return Response(_told(policies.change(actor=actor, rule_id=rule_id, draft=draft)))


class EmergencyView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="approve_change_in_emergency",
        tags=TAGS,
        request=shapes.EmergencySerializer,
        responses={200: delivery_serializers.ChangeSerializer, **REFUSALS},
        description=(
            "By a lead or platform admin, also of their own request. It runs at once, and leaves a "
            "review that another lead or admin must close."
        ),
    )
    def post(self, request: Request, change_id: int) -> Response:
        body, actor = read(shapes.EmergencySerializer, request), actor_of(request)
        emergencies.approve(actor=actor, change_id=change_id, **body)
        fresh = change_selectors.get_visible(actor=actor, change_id=change_id)
        return Response(delivery_serializers.ChangeSerializer(fresh).data)


class ReviewsView(GenericAPIView[Any]):
    serializer_class = shapes.EmergencyReviewSerializer

    @extend_schema(
        operation_id="list_emergency_reviews",
        tags=TAGS,
        parameters=[shapes.ReviewFilterSerializer],
        responses={200: shapes.EmergencyReviewSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = shapes.ReviewFilterSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        rows = review_selectors.list_visible_to(
            actor_of(request), is_open=query.validated_data["is_open"]
        )
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(shapes.EmergencyReviewSerializer(page, many=True).data)


class CloseReviewView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="close_emergency_review",
        tags=TAGS,
        request=shapes.FindingSerializer,
        responses={200: shapes.EmergencyReviewSerializer, **REFUSALS},
    )
    def post(self, request: Request, review_id: int) -> Response:
        body, actor = read(shapes.FindingSerializer, request), actor_of(request)
        review = emergencies.close_review(actor=actor, review_id=review_id, **body)
        return Response(shapes.EmergencyReviewSerializer(review).data)


def _draft(body: dict[str, Any]) -> RuleDraft:
    return RuleDraft(
        name=body["name"],
        team=body["team"],
        environments=tuple(body["environments"]),
        kinds=tuple(body["kinds"]),
        above_month_amount=body["above_month_amount"],
        gpus=tuple(body["gpus"]),
        role=body["role"],
        people=tuple(body["people"]),
        needed=body["needed"],
        is_enabled=body["is_enabled"],
    )


def _told(row: ApprovalRule) -> dict[str, Any]:
    shown = {"id": row.pk, **asdict(policies.draft_of(row))}
    told: dict[str, Any] = shapes.RuleSerializer(shown).data
    return told
