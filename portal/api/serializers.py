"""Serializers of account, tokens and teams."""

from __future__ import annotations

from decimal import Decimal

from rest_framework import serializers

from portal.accounts.models import Role
from portal.api.base_serializer import Serializer


class MyTeamSerializer(Serializer):
    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField(help_text="viewer, member, lead, or admin for platform admins")


class MeSerializer(Serializer):
    username = serializers.CharField()
    display_name = serializers.CharField()
    is_platform_admin = serializers.BooleanField()
    teams = MyTeamSerializer(many=True)


class TokenSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="first characters of the token")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenRequestSerializer(Serializer):
    name = serializers.CharField(max_length=80, help_text="where the token is used")
    days = serializers.IntegerField(default=90, min_value=1, max_value=365)


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(help_text="shown only once; send it as Authorization: Bearer …")


class TeamSerializer(Serializer):
    slug = serializers.CharField(help_text="also its namespace on every cluster")
    name = serializers.CharField()
    quota_gpus = serializers.IntegerField()
    monthly_budget_amount = serializers.DecimalField(max_digits=12, decimal_places=2)
    is_budget_binding = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class NewTeamSerializer(Serializer):
    slug = serializers.CharField(max_length=63)
    name = serializers.CharField(max_length=80)
    quota_gpus = serializers.IntegerField(min_value=0, default=4)
    monthly_budget_amount = serializers.DecimalField(
        max_digits=12, decimal_places=2, min_value=0, default=Decimal(0)
    )
    is_budget_binding = serializers.BooleanField(default=False)


class LimitsSerializer(Serializer):
    quota_gpus = serializers.IntegerField(min_value=0)
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
