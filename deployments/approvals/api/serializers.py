"""Shapes of approval rules, of what they ask for, and of emergency reviews."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from deployments.domain import approvals
from deployments.domain.states import Environment
from deployments.services.policies import KINDS

Shape = serializers.Serializer[Any]


class RequiredApprovalSerializer(Shape):
    """One rule that matches the change, and how far it is satisfied."""

    rule_id = serializers.IntegerField(
        source="requirement.rule_id", allow_null=True, help_text="null: the default of four eyes"
    )
    rule = serializers.CharField(source="requirement.rule")
    who = serializers.CharField(source="requirement.who")
    why = serializers.CharField(source="requirement.why")
    needed = serializers.IntegerField(source="requirement.needed")
    given = serializers.IntegerField()
    missing = serializers.IntegerField()
    words = serializers.CharField()


class EmergencyReviewSerializer(Shape):
    """Something was approved without the rules; another lead or admin closes it with a finding."""

    id = serializers.IntegerField()
    change_id = serializers.IntegerField()
    opened_by = serializers.CharField(source="opened_by.username")
    reason = serializers.CharField()
    opened_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField()
    closed_by = serializers.CharField(source="closed_by.username", default=None, allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    finding = serializers.CharField()


class RuleSerializer(Shape):
    """Left out or empty means any."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    team = serializers.CharField(default="", allow_blank=True, help_text="empty: all teams")
    environments = serializers.ListField(
        child=serializers.ChoiceField(choices=[one.value for one in Environment]), default=list
    )
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=[one.value for one in KINDS]), default=list
    )
    above_month_amount = serializers.DecimalField(
        max_digits=12,
        decimal_places=2,
        min_value=0,
        default=None,
        allow_null=True,
        help_text="US dollars at full scale-out; a price that is not known counts as above",
    )
    gpus = serializers.ListField(
        child=serializers.CharField(max_length=60),
        default=list,
        help_text='instance types or names of GPUs: "p5.*", "h100"',
    )
    role = serializers.ChoiceField(
        choices=[one.value for one in approvals.ApproverRole],
        default=approvals.ApproverRole.LEAD,
        help_text="who may give it besides `people`; named: nobody else",
    )
    people = serializers.ListField(child=serializers.CharField(max_length=150), default=list)
    needed = serializers.IntegerField(
        default=1, min_value=1, max_value=approvals.MOST_NEEDED, help_text="how many approvals"
    )
    is_enabled = serializers.BooleanField(default=True)


class EmergencySerializer(Shape):
    evidence_hash = serializers.CharField(max_length=64, help_text="of what was shown")
    reason = serializers.CharField(help_text="what the emergency is")


class FindingSerializer(Shape):
    finding = serializers.CharField()


class ReviewFilterSerializer(Shape):
    is_open = serializers.BooleanField(default=True)
