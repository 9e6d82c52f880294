"""Serializers of account, tokens and teams."""

from __future__ import annotations

from decimal import Decimal

from rest_framework import serializers

from portal.accounts.models import Role
from portal.accounts.scopes import Scope
from portal.api.base_serializer import Serializer


class MyTeamSerializer(Serializer):
    """A team of the account, with its role there."""

    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField(help_text="viewer, member, lead, or admin for platform admins")


class GrantSerializer(Serializer):
    """The token of the request: what it may do, and until when."""

    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField()


class MeSerializer(Serializer):
    """The account that sends the request."""

    username = serializers.CharField()
    display_name = serializers.CharField()
    is_platform_admin = serializers.BooleanField()
    is_service_account = serializers.BooleanField()
    teams = MyTeamSerializer(many=True, help_text="Teams that the token acts on.")
    token = GrantSerializer(
        allow_null=True, help_text="The token of this request. Null for a session."
    )


class TokenSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="first characters of the token")
    scopes = serializers.ListField(child=serializers.CharField(), source="scope_names")
    team = serializers.CharField(
        source="team.slug",
        default=None,
        allow_null=True,
        help_text="Null means all teams of the owner.",
    )
    requests_per_minute = serializers.IntegerField(
        allow_null=True, help_text="Null means as many as the platform allows."
    )
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenRequestSerializer(Serializer):
    name = serializers.CharField(max_length=80, help_text="Place where the token is used.")
    days = serializers.IntegerField(
        min_value=1,
        max_value=365,
        default=None,
        allow_null=True,
        help_text="90 where the platform allows as many; with the scope decide 1",
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in Scope]),
        default=lambda: [Scope.READ.value],
        help_text="every scope implies read",
    )
    team = serializers.CharField(
        max_length=63, default="", allow_blank=True, help_text="Leave empty for all your teams."
    )
    requests_per_minute = serializers.IntegerField(
        min_value=1,
        default=None,
        allow_null=True,
        help_text="Null means as many as the platform allows.",
    )


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(help_text="shown only once; send it as Authorization: Bearer …")


_QUOTA = (
    "GPUs and Neuron devices together, counted at max replicas; a slice or shared GPU counts as one"
)


class TeamSerializer(Serializer):
    slug = serializers.CharField(help_text="The team's slug, and its namespace on every cluster.")
    name = serializers.CharField()
    quota_gpus = serializers.IntegerField(help_text=_QUOTA)
    monthly_budget_amount = serializers.DecimalField(max_digits=12, decimal_places=2)
    is_budget_binding = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class NewTeamSerializer(Serializer):
    slug = serializers.CharField(max_length=63)
    name = serializers.CharField(max_length=80)
    quota_gpus = serializers.IntegerField(min_value=0, default=4, help_text=_QUOTA)
    monthly_budget_amount = serializers.DecimalField(
        max_digits=12, decimal_places=2, min_value=0, default=Decimal(0)
    )
    is_budget_binding = serializers.BooleanField(default=False)


class LimitsSerializer(Serializer):
    quota_gpus = serializers.IntegerField(min_value=0, help_text=_QUOTA)
    monthly_budget_amount = serializers.DecimalField(max_digits=12, decimal_places=2, min_value=0)
    is_budget_binding = serializers.BooleanField(
        default=False, help_text="refuse requests that would exceed the budget in a full month"
    )


class MemberSerializer(Serializer):
    username = serializers.CharField(source="user.username")
    display_name = serializers.CharField(source="user.display_name")
    role = serializers.ChoiceField(choices=Role.choices)


class RoleSerializer(Serializer):
    role = serializers.ChoiceField(choices=Role.choices)
