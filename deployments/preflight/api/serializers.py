"""Serializers of the checks before a request and before its approval."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.base_serializer import Serializer


class PreflightCheckSerializer(Serializer):
    """A check of a request; `ok` is null while unknown. A failed one with `is_blocking` refuses
    the request.
    """

    name = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True, help_text="Null if unknown.")
    detail = serializers.CharField()
    fix = serializers.CharField()
    is_blocking = serializers.BooleanField()


class CostSerializer(Serializer):
    """The cost of a request in US dollars, as text; null means unknown."""

    per_hour = serializers.CharField(allow_null=True, help_text="US dollars; null: unknown")
    month_min = serializers.CharField(allow_null=True)
    month_max = serializers.CharField(allow_null=True)
    budget = serializers.CharField(allow_null=True)
    spent = serializers.CharField(allow_null=True)
    forecast = serializers.CharField(allow_null=True)
    price_source = serializers.CharField()
    team_month_min = serializers.CharField(
        allow_null=True,
        help_text="a full month of everything that the team then runs, with this at min replicas",
    )
    team_month_max = serializers.CharField(allow_null=True, help_text="the same at max replicas")
    replaced_month_max = serializers.CharField(
        allow_null=True,
        help_text="a full month of the revision that this one replaces, at max replicas",
    )
    overlap_amount = serializers.CharField(
        allow_null=True, help_text="cost of the stable revision during the rollout"
    )
    overlap_seconds = serializers.CharField(
        allow_null=True, help_text="expected duration of the rollout"
    )
    cheapest_per_hour = serializers.CharField(
        allow_null=True,
        help_text=(
            "Price per hour on the cheapest of several instance types. Amounts without this prefix "
            "are for the most expensive."
        ),
    )
    cheapest_month_min = serializers.CharField(allow_null=True)
    cheapest_month_max = serializers.CharField(allow_null=True)


class PreflightSerializer(Serializer):
    """The checks and costs of a new deployment before it is requested."""

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
    """The checks and costs of a change before it is requested."""

    can_submit = serializers.BooleanField()
    checks = PreflightCheckSerializer(many=True, help_text="Empty for a retirement.")
    cost = serializers.SerializerMethodField()
    manifests = serializers.CharField(help_text="YAML that would be applied")

    @extend_schema_field(CostSerializer(allow_null=True))
    def get_cost(self, preflight: Any) -> dict[str, str | None] | None:
        """The cost. Null for a retirement."""
        return None if preflight.cost is None else preflight.cost.to_json()


class ChangedCheckSerializer(Serializer):
    name = serializers.CharField()
    was = serializers.BooleanField(
        allow_null=True, help_text="at the request; null: unknown, or no check then"
    )
    is_worse = serializers.BooleanField()
    now = PreflightCheckSerializer()


class RecheckSerializer(Serializer):
    can_approve = serializers.BooleanField(help_text="false: an approval would be refused")
    at = serializers.DateTimeField()
    checks = PreflightCheckSerializer(many=True)
    changed = ChangedCheckSerializer(
        many=True, help_text="checks whose result changed since the request"
    )
