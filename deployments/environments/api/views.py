"""Environments and their rules in the API."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.environments.domain import environment_rules as domain
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.selectors import environment_rules as selectors
from deployments.environments.services import environment_rules
from deployments.states import Environment
from portal.accounts import policy, teams
from portal.accounts.policy import Action
from portal.api.base_serializer import Serializer, choice_of
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS

TAGS = ["approvals"]


class NewTeamEnvironmentSerializer(Serializer):
    """The rules that a team adds to those of the platform."""

    approvals = serializers.IntegerField(default=1, min_value=1, max_value=domain.MOST_APPROVALS)
    role = choice_of(
        domain.ApproverGroup,
        default=domain.ApproverGroup.LEAD,
        help_text="admin: platform admins only",
    )
    stop_needs_approval = serializers.BooleanField(default=False)
    callers_need_key = serializers.BooleanField(default=False)
    golden_required = serializers.BooleanField(default=False)
    promoted_from = choice_of(
        (Environment.DEVELOPMENT, Environment.STAGING),
        default="",
        allow_blank=True,
        help_text="environment in which a version must have served before; empty: none",
    )


class NewEnvironmentSerializer(NewTeamEnvironmentSerializer):
    """The rules of the platform, which hold for every team."""

    cluster_ids = serializers.ListField(
        child=serializers.IntegerField(),
        default=list,
        max_length=1000,
        help_text="clusters that admit only environments that list them",
    )


class EnvironmentRulesSerializer(NewEnvironmentSerializer):
    """The rules of one environment. An empty `team` means the rules of the platform."""

    environment = choice_of(Environment)
    team = serializers.CharField()


class EnvironmentsView(APIView):
    @extend_schema(
        operation_id="list_environments",
        tags=TAGS,
        responses=EnvironmentRulesSerializer(many=True),
        description=(
            "Rules of the platform, and those that your teams added. Where both exist, the stricter "
            "value of each field holds."
        ),
    )
    def get(self, request: Request) -> Response:
        visible = policy.visible_teams(actor_of(request)).values_list("pk", flat=True)
        listed = selectors.list_layers(visible)
        rows = [
            _body_of(
                environment, layer.rules, layer.team.slug if layer.team else "", layer.cluster_ids
            )
            for environment, layers in listed.items()
            for layer in layers
        ]
        return Response(EnvironmentRulesSerializer(rows, many=True).data)


class EnvironmentView(APIView):
    @extend_schema(
        operation_id="change_environment",
        tags=TAGS,
        request=NewEnvironmentSerializer,
        responses={200: EnvironmentRulesSerializer, **REFUSALS},
        description="Platform admins only. Approvals given under the old rules become void.",
    )
    def put(self, request: Request, environment: str) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        body = read_body(NewEnvironmentSerializer, request)
        clusters = tuple(dict.fromkeys(body["cluster_ids"]))
        rules = environment_rules.change(
            actor=actor,
            environment=environment,
            team=None,
            rules=EnvironmentRules.from_json(body),
            cluster_ids=clusters,
        )
        answer = _body_of(environment, rules, "", clusters)
        return Response(EnvironmentRulesSerializer(answer).data)


class TeamEnvironmentView(APIView):
    @extend_schema(
        operation_id="change_team_environment",
        tags=TAGS,
        request=NewTeamEnvironmentSerializer,
        responses={200: EnvironmentRulesSerializer, **REFUSALS},
        description="Leads add rules for their team; only a platform admin takes one away. Approvals "
        "given under the old rules become void.",
    )
    def put(self, request: Request, slug: str, environment: str) -> Response:
        actor = actor_of(request)
        team = teams.get_visible(actor=actor, slug=slug)
        policy.require(actor, Action.MANAGE_ENVIRONMENTS, team)
        rules = environment_rules.change(
            actor=actor,
            environment=environment,
            team=team,
            rules=EnvironmentRules.from_json(read_body(NewTeamEnvironmentSerializer, request)),
        )
        answer = _body_of(environment, rules, team.slug, ())
        return Response(EnvironmentRulesSerializer(answer).data)


def _body_of(
    environment: str, rules: EnvironmentRules, team: str, cluster_ids: tuple[int, ...]
) -> dict[str, Any]:
    return {
        **rules.to_json(),
        "environment": environment,
        "team": team,
        "cluster_ids": list(cluster_ids),
    }


urlpatterns: list[URLPattern] = [
    path("environments", EnvironmentsView.as_view(), name="environments"),
    path("environments/<slug:environment>", EnvironmentView.as_view(), name="environment"),
    path(
        "teams/<slug:slug>/environments/<slug:environment>",
        TeamEnvironmentView.as_view(),
        name="team-environment",
    ),
]
