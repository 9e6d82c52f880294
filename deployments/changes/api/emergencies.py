"""Rules of approval, approving past them in an emergency, and the reviews of that."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.rules import TAGS
from deployments.approvals.api.serializers import (
    EmergencyReviewSerializer,
    EmergencySerializer,
    FindingSerializer,
    ReviewFilterSerializer,
)
from deployments.changes.api.serializers import ChangeSerializer
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.selectors import emergency_reviews as review_selectors
from deployments.changes.services import break_glass
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS


class EmergencyView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="approve_change_in_emergency",
        tags=TAGS,
        request=EmergencySerializer,
        responses={200: ChangeSerializer, **REFUSALS},
        description=(
            "By a lead or platform admin, never of their own request. It runs at once, and leaves a "
            "review that another lead or admin must close. Refused while a review is overdue."
        ),
    )
    def post(self, request: Request, change_id: int) -> Response:
        body, actor = read_body(EmergencySerializer, request), actor_of(request)
        break_glass.approve(actor=actor, change_id=change_id, **body)
        fresh = change_selectors.get_visible(actor=actor, change_id=change_id)
        return Response(ChangeSerializer(fresh).data)


class ReviewsView(GenericAPIView[Any]):
    serializer_class = EmergencyReviewSerializer

    @extend_schema(
        operation_id="list_emergency_reviews",
        tags=TAGS,
        parameters=[ReviewFilterSerializer],
        responses={200: EmergencyReviewSerializer(many=True), 422: PROBLEM},
    )
    def get(self, request: Request) -> Response:
        query = read_query(ReviewFilterSerializer, request)
        rows = review_selectors.list_visible_to(actor_of(request), is_open=query["is_open"])
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(EmergencyReviewSerializer(page, many=True).data)


class CloseReviewView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="close_emergency_review",
        tags=TAGS,
        request=FindingSerializer,
        responses={200: EmergencyReviewSerializer, **REFUSALS},
    )
    def post(self, request: Request, review_id: int) -> Response:
        body, actor = read_body(FindingSerializer, request), actor_of(request)
        review = break_glass.close_review(actor=actor, review_id=review_id, **body)
        return Response(EmergencyReviewSerializer(review).data)
