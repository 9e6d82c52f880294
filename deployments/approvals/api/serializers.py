"""Serializers of approval rules, the approvals they require, and emergency reviews."""

from __future__ import annotations

from rest_framework import serializers

from deployments.approvals.domain import rules
from deployments.approvals.domain.approver_roles import RequiredRole
from deployments.approvals.services.rules import KINDS
from deployments.states import Environment
from portal.api.base_serializer import Serializer, choice_of


class RequiredApprovalSerializer(Serializer):
    """One rule that matches the change, and how far it is met."""

    rule_id = serializers.IntegerField(
        source="requirement.rule_id",
        allow_null=True,
        help_text="Null means the four-eyes default, or the rules of the environment.",
    )
    rule = serializers.CharField(source="requirement.rule")
    approvers = serializers.CharField(source="requirement.who")
    reason = serializers.CharField(source="requirement.why")
    needed = serializers.IntegerField(source="requirement.needed")
    given = serializers.IntegerField()
    missing = serializers.IntegerField()
    description = serializers.CharField()


class EmergencyReviewSerializer(Serializer):
    """A request was approved without the rules; another lead or admin closes the review."""

    id = serializers.IntegerField()
    change_id = serializers.IntegerField()
    opened_by = serializers.CharField(source="opened_by.username")
    reason = serializers.CharField()
    opened_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField()
    closed_by = serializers.CharField(source="closed_by.username", default=None, allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    finding = serializers.CharField()


class RuleSerializer(Serializer):
    """An approval rule. Fields that are left out or empty match anything."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    team = serializers.CharField(default="", allow_blank=True, help_text="Empty means all teams.")
    environments = serializers.ListField(
        child=choice_of(Environment),
        default=list,
    )
    kinds = serializers.ListField(child=choice_of(KINDS), default=list)
    above_month_amount = serializers.DecimalField(
        max_digits=12,
        decimal_places=2,
        min_value=0,
        default=None,
        allow_null=True,
        help_text="US dollars a month at max replicas; an unknown price counts as above",
    )
    gpus = serializers.ListField(
        child=serializers.CharField(max_length=60),
        default=list,
        help_text='instance types or names of GPUs: "p5.*", "h100"',
    )
    only_opening = serializers.BooleanField(
        default=False, help_text="Match only changes after which callers no longer need a key."
    )
    role = choice_of(
        RequiredRole,
        default=RequiredRole.LEAD,
        help_text="who may approve in addition to `people`; named: nobody else",
    )
    people = serializers.ListField(child=serializers.CharField(max_length=150), default=list)
    needed = serializers.IntegerField(
        default=1, min_value=1, max_value=rules.MOST_NEEDED, help_text="how many approvals"
    )
    is_enabled = serializers.BooleanField(default=True)


class EmergencySerializer(Serializer):
    evidence_hash = serializers.CharField(
        max_length=64, help_text="Hash of the evidence that was shown."
    )
    reason = serializers.CharField(help_text="reason for the override")


class FindingSerializer(Serializer):
    finding = serializers.CharField()


class ReviewFilterSerializer(Serializer):
    is_open = serializers.BooleanField(default=True)


class CommentSerializer(Serializer):
    comment = serializers.CharField(default="", allow_blank=True)


class DecisionSerializer(CommentSerializer):
    evidence_hash = serializers.CharField(
        max_length=64, help_text="Hash of the evidence that was shown."
    )


class StopReasonSerializer(Serializer):
    reason = serializers.CharField(default="", allow_blank=True)
