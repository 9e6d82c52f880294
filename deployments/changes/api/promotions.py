"""Promotion of a deployment's version to the next environment, in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.changes.services import promotions
from deployments.changes.services.promotions import Promotion
from deployments.preflight.api.serializers import PreflightCheckSerializer
from deployments.serving.api.serializers import TAGS
from deployments.states import Environment
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of
from portal.api.responses import REFUSALS


class PromotionEvidenceSerializer(Serializer):
    """The evidence of one revision with exactly this version in the environment before."""

    environment = choice_of(Environment)
    deployment_id = serializers.IntegerField()
    deployment = serializers.CharField()
    revision_number = serializers.IntegerField()
    version = serializers.CharField()
    rollout_id = serializers.IntegerField(
        allow_null=True, help_text="Null for the first revision of its deployment."
    )
    is_finished = serializers.BooleanField()
    progress = serializers.CharField()
    finished_at = serializers.DateTimeField(allow_null=True)
    golden = serializers.CharField(help_text="passed, failed, not run, or none")
    golden_detail = serializers.CharField()
    golden_at = serializers.DateTimeField(allow_null=True)


class PromotionTargetSerializer(Serializer):
    """A deployment that can take the version."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    cluster = serializers.CharField(source="cluster.name")


class PromotionSerializer(Serializer):
    """An environment to which the version of a deployment can go next."""

    environment = choice_of(Environment, help_text="Environment that the version would enter.")
    version_id = serializers.IntegerField(source="revision.version_id")
    evidence = PromotionEvidenceSerializer(allow_null=True)
    checks = PreflightCheckSerializer(many=True, help_text="Requirements of the rules there.")
    is_possible = serializers.BooleanField()
    targets = PromotionTargetSerializer(
        many=True, help_text="deployments of the same model there: request a canary on one of them"
    )

    new_deployment = serializers.SerializerMethodField(
        help_text="the body of a new deployment there with the settings of this one; it lacks a name"
    )

    @extend_schema_field(serializers.DictField())
    def get_new_deployment(self, found: Promotion) -> dict[str, Any]:
        return promotions.body_of(found)


class PromotionView(APIView):
    @extend_schema(
        operation_id="read_promotion",
        tags=TAGS,
        responses={200: PromotionSerializer, **REFUSALS},
        description=(
            "Show the evidence of this deployment's version, and where it can go next. Request it with a "
            "canary on a target or a new deployment: the request carries the evidence, and the approval "
            "binds to it. Nothing is written."
        ),
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        preview = promotions.preview(actor=actor_of(request), deployment_id=deployment_id)
        return Response(PromotionSerializer(preview).data)
