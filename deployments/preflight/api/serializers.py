"""Shapes of what is checked before a request and before its approval, in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.base_serializer import Serializer


class PreflightCheckSerializer(Serializer):
    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="null: not known")
    detail = serializers.CharField()
    fix = serializers.CharField()
    is_blocking = serializers.BooleanField()


class CostSerializer(Serializer):
    per_hour = serializers.CharField(allow_null=True, help_text="US dollars; null: not known")
    month_min = serializers.CharField(allow_null=True)
    month_max = serializers.CharField(allow_null=True)
    budget = serializers.CharField(allow_null=True)
    spent = serializers.CharField(allow_null=True)
    forecast = serializers.CharField(allow_null=True)
    price_source = serializers.CharField()
    team_month_min = serializers.CharField(
        allow_null=True,
        help_text="a whole month of all that the team then runs, with this at its fewest replicas",
    )
    team_month_max = serializers.CharField(allow_null=True, help_text="at its most replicas")
    overlap_amount = serializers.CharField(
        allow_null=True, help_text="of the revision that serves, while the rollout runs"
    )
    overlap_seconds = serializers.CharField(allow_null=True, help_text="how long that is expected")


class PreflightSerializer(Serializer):
    can_submit = serializers.BooleanField()
    checks = PreflightCheckSerializer(many=True)
    cost = serializers.SerializerMethodField()
    url = serializers.CharField()
    manifests = serializers.CharField(help_text="YAML")
    evidence_hash = serializers.CharField()

    @extend_schema_field(CostSerializer)
    def get_cost(self, preflight: Any) -> dict[str, str | None]:
        cost: dict[str, str | None] = preflight.cost.to_json()
        return cost


class ChangePreflightSerializer(Serializer):
    can_submit = serializers.BooleanField()
    checks = PreflightCheckSerializer(many=True, help_text="none of a retirement: it only removes")
    cost = serializers.SerializerMethodField()
    manifests = serializers.CharField(help_text="YAML of what would be applied")

    @extend_schema_field(CostSerializer(allow_null=True))
    def get_cost(self, found: Any) -> dict[str, str | None] | None:
        """Null of a retirement."""
        return None if found.cost is None else found.cost.to_json()


class TurnedCheckSerializer(Serializer):
    name = serializers.CharField()
    was = serializers.BooleanField(allow_null=True, help_text="at the request; null: not known")
    is_worse = serializers.BooleanField()
    now = PreflightCheckSerializer()


class RecheckSerializer(Serializer):
    can_approve = serializers.BooleanField(help_text="false: approving would be refused")
    at = serializers.DateTimeField()
    checks = PreflightCheckSerializer(many=True)
    turned = TurnedCheckSerializer(many=True, help_text="what says something else than it did")
