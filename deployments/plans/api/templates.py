"""Rollout templates of a team."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.plans.api.serializers import PlanSerializer, RolloutStepSerializer
from deployments.plans.services import templates
from portal.accounts import teams
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM

TAGS = ["rollouts"]


class NewTemplateSerializer(Serializer):
    name = serializers.CharField(max_length=60, help_text="replaces a template of the same name")
    steps = RolloutStepSerializer(many=True)
    plan = PlanSerializer(required=False)


class TemplateSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    steps = RolloutStepSerializer(many=True)
    plan = PlanSerializer()
    saved_by = serializers.CharField(source="saved_by.username")
    saved_at = serializers.DateTimeField()


class TemplatesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_rollout_templates",
        tags=TAGS,
        responses={200: TemplateSerializer(many=True), 404: PROBLEM},
    )
    def get(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        rows = templates.list_of(actor=actor, team=team)
        return Response(TemplateSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="save_rollout_template",
        tags=TAGS,
        request=NewTemplateSerializer,
        responses={201: TemplateSerializer, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM, 422: PROBLEM},
        description=("Steps and plan, as in a canary request. Existing rollouts are not affected."),
    )
    def post(self, request: Request, slug: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        body = read_body(NewTemplateSerializer, request)
        made = templates.save(
            actor=actor,
            team=team,
            name=body["name"],
            steps=[dict(step) for step in body["steps"]],
            plan=body.get("plan", {}),
        )
        return Response(TemplateSerializer(made).data, status=status.HTTP_201_CREATED)


class TemplateView(APIView):
    @extend_schema(
        operation_id="remove_rollout_template",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM},
    )
    def delete(self, request: Request, slug: str, template_id: int) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        templates.remove(actor=actor, team=team, template_id=template_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
