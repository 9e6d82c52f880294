"""Finished parts of a batch job's output by REST."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from deployments.batch.services import downloads
from deployments.models import BatchChunk
from portal.api.base_serializer import Serializer
from portal.api.pagination import CursorPage
from portal.api.requests import actor_of
from portal.api.responses import PROBLEM


class BatchPartSerializer(Serializer):
    """A finished part of a batch job's output."""

    number = serializers.IntegerField()
    first_row = serializers.IntegerField()
    rows = serializers.IntegerField()
    failed_rows = serializers.IntegerField()
    url = serializers.SerializerMethodField(
        help_text="Address for GET at the object store, without a token. Valid for 15 minutes."
    )

    def get_url(self, part: BatchChunk) -> str:
        return downloads.url_of(part)


class _Pages(CursorPage):
    ordering = "id"


class BatchPartsView(GenericAPIView[Any]):
    serializer_class = BatchPartSerializer
    pagination_class = _Pages

    @extend_schema(
        operation_id="list_batch_parts",
        tags=["batch"],
        responses={200: BatchPartSerializer(many=True), 404: PROBLEM},
        description="The finished parts of the output, in the order of the rows, each with a presigned address.",
    )
    def get(self, request: Request, job_id: int) -> Response:
        rows = downloads.list_parts(actor=actor_of(request), job_id=job_id).select_related("job")
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(BatchPartSerializer(page, many=True).data)


urlpatterns: list[URLPattern] = [
    path("batch-jobs/<int:job_id>/parts", BatchPartsView.as_view(), name="batch-parts")
]
