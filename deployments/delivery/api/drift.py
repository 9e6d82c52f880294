"""Drift of a deployment, and what people decide about it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import CommentSerializer
from deployments.changes.api.serializers import ChangeSerializer
from deployments.changes.selectors import changes
from deployments.delivery.domain.drift import DriftOutcome
from deployments.delivery.services import drift_decisions
from deployments.serving.api.serializers import TAGS
from deployments.serving.selectors import deployments
from deployments.states import DriftPolicy
from portal.api.actions import action
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS


class EditSerializer(Serializer):
    kind = serializers.CharField()
    name = serializers.CharField()
    path = serializers.CharField(help_text="Empty when the object was deleted.")
    desired = serializers.CharField()
    live = serializers.CharField(help_text="Empty when the field was removed.")
    by = serializers.CharField(
        help_text="The field manager; empty when the cluster does not report one."
    )
    at = serializers.CharField()
    description = serializers.CharField()


class DriftPolicySerializer(Serializer):
    policy = choice_of(DriftPolicy)


class DriftSerializer(DriftPolicySerializer):
    outcome = choice_of(DriftOutcome, source="drift.outcome", allow_blank=True)
    detected_at = serializers.DateTimeField(source="drift.detected_at", allow_null=True)
    reverts = serializers.IntegerField(source="drift.reverts")
    edits = EditSerializer(source="drift.edits", many=True)
    is_revert_requested = serializers.BooleanField()
    is_adoptable = serializers.BooleanField()
    not_adoptable = EditSerializer(many=True)
    hold_requested = serializers.CharField(
        help_text="who requested to hold drift, and the approvals that it needs; empty: nobody"
    )


class DriftView(APIView):
    @extend_schema(
        operation_id="get_drift",
        tags=TAGS,
        responses={200: DriftSerializer, 404: PROBLEM},
        description="The last drift of the deployment on its cluster, and what was done about it.",
    )
    def get(self, request: Request, deployment_id: int) -> Response:
        actor = actor_of(request)
        deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
        return Response(DriftSerializer(drift_decisions.view_of(deployment)).data)

    @extend_schema(
        operation_id="set_drift_policy",
        tags=TAGS,
        request=DriftPolicySerializer,
        responses={200: DriftSerializer, **REFUSALS},
        description="Revert later drift automatically (re-apply), or hold it for review. Holding needs the approvals of a "
        "change: the first call requests it, calls of others approve it.",
    )
    def put(self, request: Request, deployment_id: int) -> Response:
        to = DriftPolicy(read_body(DriftPolicySerializer, request)["policy"])
        deployment = drift_decisions.set_policy(
            actor=actor_of(request), deployment_id=deployment_id, to=to
        )
        return Response(DriftSerializer(drift_decisions.view_of(deployment)).data)


ReApplyView = action(
    drift_decisions.re_apply,
    operation_id="re_apply",
    tags=TAGS,
    shown_by=DriftSerializer,
    show=lambda _, deployment: drift_decisions.view_of(deployment),
    description="Revert drift that is held for review to the approved manifests.",
)
AdoptView = action(
    drift_decisions.adopt,
    operation_id="adopt_drift",
    tags=TAGS,
    body=CommentSerializer,
    shown_by=ChangeSerializer,
    show=lambda actor, change: changes.get_visible(actor=actor, change_id=change.pk),
    status=status.HTTP_201_CREATED,
    description="Request the edited state as a change, to be approved.",
)
