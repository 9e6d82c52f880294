"""What was edited on the cluster, and what people choose to do about it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.api import delivery_serializers as shapes
from deployments.api.delivery import REFUSALS, TAGS, created, read
from deployments.domain.drifting import Outcome
from deployments.domain.states import DriftPolicy
from deployments.selectors import deployments
from deployments.services import drifts
from portal.api.idempotency import IdempotentMixin
from portal.api.views import PROBLEM, actor_of


class EditSerializer(shapes.Shape):
    kind = serializers.CharField()
    name = serializers.CharField()
    path = serializers.CharField(help_text="Empty when the object was deleted.")
    wanted = serializers.CharField()
    live = serializers.CharField(help_text="Empty when the field was removed.")
    by = serializers.CharField(help_text="The field manager; empty when the cluster does not tell.")
    at = serializers.CharField()
    words = serializers.CharField()


class DriftPolicySerializer(shapes.Shape):
    policy = serializers.ChoiceField(choices=[policy.value for policy in DriftPolicy])


class DriftSerializer(DriftPolicySerializer):
    outcome = serializers.ChoiceField(
        choices=[outcome.value for outcome in Outcome], source="drift.outcome", allow_blank=True
    )
    found_at = serializers.DateTimeField(source="drift.found_at", allow_null=True)
    heals = serializers.IntegerField(source="drift.heals")
    edits = EditSerializer(source="drift.edits", many=True)
    is_heal_wanted = serializers.BooleanField()
    is_adoptable = serializers.BooleanField()
    not_adoptable = EditSerializer(source="left", many=True)


class DriftView(APIView):
    @extend_schema(
        operation_id="get_drift",
        tags=TAGS,
        responses={200: DriftSerializer, 404: PROBLEM},
        description="What others last edited of the deployment on its cluster, and what became of it.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        found = deployments.get_visible_by_id(actor=actor_of(request), deployment_id=deployment_id)
        return Response(DriftSerializer(drifts.view_of(found)).data)

    @extend_schema(
        operation_id="set_drift_policy",
        tags=TAGS,
        request=DriftPolicySerializer,
        responses={200: DriftSerializer, **REFUSALS},
        description="Put later edits right at once (re-apply), or hold them until someone chooses.",
    )
    def put(self, request: Request, deployment_id: int) -> Response:
        to = DriftPolicy(read(DriftPolicySerializer, request)["policy"])
        found = drifts.set_policy(actor=actor_of(request), deployment_id=deployment_id, to=to)
        return Response(DriftSerializer(drifts.view_of(found)).data)


class ReApplyView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="re_apply",
        tags=TAGS,
        request=None,
        responses={200: DriftSerializer, **REFUSALS},
        description="Put right what is held: what was approved is applied again.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        found = drifts.re_apply(actor=actor_of(request), deployment_id=deployment_id)
        return Response(DriftSerializer(drifts.view_of(found)).data)


class AdoptView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="adopt_drift",
        tags=TAGS,
        request=shapes.CommentSerializer,
        responses={201: shapes.ChangeSerializer, **REFUSALS},
        description="Ask for what the cluster was edited to, as a change request to be approved.",
    )
    def post(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        comment = read(shapes.CommentSerializer, request)["comment"]
        change = drifts.adopt(actor=actor, deployment_id=deployment_id, comment=comment)
        return created(actor, change)
