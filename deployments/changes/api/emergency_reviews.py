"""The reviews of emergency overrides."""

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
    FindingSerializer,
    ReviewFilterSerializer,
)
from deployments.changes.selectors import emergency_reviews
from deployments.changes.services import emergency_override
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS


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
        rows = emergency_reviews.list_visible_to(actor_of(request), is_open=query["is_open"])
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
        review = emergency_override.close_review(actor=actor, review_id=review_id, **body)
        return Response(EmergencyReviewSerializer(review).data)
