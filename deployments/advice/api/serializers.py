"""Advice in the API."""

from __future__ import annotations

from rest_framework import serializers

from deployments.advice.domain.advice import MONTHS_PER_YEAR
from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.services.answers import LONGEST_SNOOZE_DAYS
from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.api.base_serializer import Serializer, choice_of


class AdviceSerializer(Serializer):
    """An item of advice. Amounts are dollars per month of 730 hours, or per year where the name says so."""

    id = serializers.IntegerField()
    subject = serializers.CharField(help_text="team/deployment, or cluster/node")
    kind = serializers.CharField()
    state = choice_of(AdviceState)
    message = serializers.CharField()
    evidence = serializers.SerializerMethodField()
    cost_amount = serializers.CharField()
    saving_amount = serializers.CharField()
    saving_year_amount = serializers.SerializerMethodField()
    formula = serializers.CharField()
    risk = serializers.CharField()
    risk_reason = serializers.CharField()
    can_request = serializers.SerializerMethodField()
    snoozed_until = serializers.DateTimeField(allow_null=True)
    answer_reason = serializers.CharField()
    change_id = serializers.IntegerField(allow_null=True)
    realised_amount = serializers.CharField(allow_null=True)
    realised_hours = serializers.IntegerField()
    computed_at = serializers.DateTimeField()

    def get_evidence(self, item: AdviceItem) -> list[dict[str, str]]:
        return [EvidenceLine.from_json(row).to_json() for row in item.evidence]

    def get_saving_year_amount(self, item: AdviceItem) -> str:
        return str(item.saving_amount * MONTHS_PER_YEAR)

    def get_can_request(self, item: AdviceItem) -> bool:
        return bool(item.proposal)


class AdviceQuerySerializer(Serializer):
    team = serializers.CharField(default="", allow_blank=True, help_text="The slug of a team.")


class SnoozeSerializer(Serializer):
    days = serializers.IntegerField(min_value=1, max_value=LONGEST_SNOOZE_DAYS)
    reason = serializers.CharField(required=False, allow_blank=True, max_length=500, default="")


class DismissSerializer(Serializer):
    reason = serializers.CharField(max_length=500)
