"""Imports: start, list, show, cancel, resume."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.imports.api.serializers import (
    ImportFilterSerializer,
    ImportSerializer,
    StartImportSerializer,
)
from deployments.imports.selectors import imports as selector
from deployments.imports.services import imports
from deployments.imports.services.imports import ImportDraft
from portal.api.actions import action
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["imports"]


class StartImportView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="start_import",
        tags=TAGS,
        request=StartImportSerializer,
        responses={201: ImportSerializer, **REFUSALS},
        description="Copy a model from where it is into the bucket, as a new version; the first "
        "version creates the model. No byte passes through the client. Poll the import until it is "
        "done, then the version until it is ready.",
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        body = read_body(StartImportSerializer, request)
        job = imports.start(
            actor=actor_of(request), team_slug=team, model_name=name, draft=ImportDraft(**body)
        )
        return Response(ImportSerializer(job).data, status=status.HTTP_201_CREATED)


class ImportsView(GenericAPIView[Any]):
    serializer_class = ImportSerializer

    @extend_schema(
        operation_id="list_imports",
        tags=TAGS,
        parameters=[ImportFilterSerializer],
        responses={200: ImportSerializer(many=True), 422: PROBLEM},
        description="Imports of all models that you may see, newest first.",
    )
    def get(self, request: Request) -> Response:
        query = read_query(ImportFilterSerializer, request)
        page = self.paginate_queryset(selector.list_imports(actor=actor_of(request), **query))
        return self.get_paginated_response(ImportSerializer(page, many=True).data)


class ImportView(APIView):
    @extend_schema(
        operation_id="get_import",
        tags=TAGS,
        responses={200: ImportSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, import_id: int) -> Response:
        job = selector.get_import(actor=actor_of(request), import_id=import_id)
        return Response(ImportSerializer(job).data)


CancelImportView = action(
    imports.cancel,
    operation_id="cancel_import",
    tags=TAGS,
    shown_by=ImportSerializer,
    description="End a running or failed import at once. Its version fails and what was copied is "
    "deleted.",
)
ResumeImportView = action(
    imports.resume,
    operation_id="resume_import",
    tags=TAGS,
    shown_by=ImportSerializer,
    description="Try a failed import again. Files that were copied are kept, unless the source has "
    "changed since.",
)

urlpatterns: list[URLPattern] = [
    path("models/<slug:team>/<str:name>/imports", StartImportView.as_view(), name="start-import"),
    path("imports", ImportsView.as_view(), name="imports"),
    path("imports/<int:import_id>", ImportView.as_view(), name="import"),
    path("imports/<int:import_id>/cancel", CancelImportView.as_view(), name="cancel-import"),
    path("imports/<int:import_id>/resume", ResumeImportView.as_view(), name="resume-import"),
]
