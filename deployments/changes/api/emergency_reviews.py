"""The reviews of emergency overrides."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from deployments.approvals.api.rules import TAGS
from deployments.approvals.api.serializers import (
    EmergencyReviewSerializer,
    FindingSerializer,
    ReviewFilterSerializer,
)
from deployments.changes.selectors import emergency_reviews
from deployments.changes.services import emergency_override
from portal.api.actions import action
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM


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


CloseReviewView = action(
    emergency_override.close_review,
    operation_id="close_emergency_review",
    tags=TAGS,
    body=FindingSerializer,
    shown_by=EmergencyReviewSerializer,
)
