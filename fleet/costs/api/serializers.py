"""Costs in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from rest_framework import serializers

from fleet.costs.domain.results import GroupBy, IdleRule, Step
from portal.api.base_serializer import Serializer, choice_of, dollars


class MomentField(serializers.DateTimeField):
    """A time that keeps the offset from UTC in which it was written; without one it is UTC."""

    def enforce_timezone(self, value: datetime) -> datetime:
        in_utc = super().enforce_timezone(value)
        return in_utc if value.tzinfo is None else value


class KeySerializer(Serializer):
    """The group of a row of costs."""

    name = serializers.CharField(source="label")
    team_slug = serializers.CharField()
    model = serializers.CharField()
    deployment = serializers.CharField()
    revision = serializers.CharField()
    cluster_name = serializers.CharField()
    is_idle = serializers.BooleanField()


class UsageSerializer(Serializer):
    key = KeySerializer()
    requests = serializers.IntegerField()
    failures = serializers.IntegerField()
    inferences = serializers.IntegerField()
    observed_ms = serializers.IntegerField(help_text="observed pod time")
    utilisation = serializers.FloatField(allow_null=True)
    utilisation_source = serializers.CharField(source="source")


class CostRowSerializer(Serializer):
    """The costs of one group in US dollars."""

    key = KeySerializer()
    amount = dollars()
    allocated_amount = dollars(help_text="Cost of sealed hours.")
    estimated_amount = dollars(help_text="Cost of hours that are not sealed yet.")
    gpu_hours = dollars()
    unpriced_gpu_hours = dollars(
        help_text=(
            "GPU hours without a price, which count as 0 dollars. If there are any, costs per unit "
            "and changes are null."
        )
    )
    is_unpriced = serializers.BooleanField(
        help_text="no hour of the group has a price: the amount is not known, which is not 0"
    )
    utilisation = serializers.FloatField(allow_null=True)
    utilisation_source = serializers.CharField()
    used_amount = dollars(
        allow_null=True,
        help_text="amount x utilisation; null: use was not measured, or a price is missing",
    )
    inferences = serializers.IntegerField(allow_null=True)
    usd_per_1k_inferences_amount = dollars(
        allow_null=True,
        help_text="exact also of fewer than 1,000 inferences, of which pages say that they are too few for a price",
    )
    tokens = serializers.IntegerField(
        allow_null=True,
        help_text="Tokens of language models, prompts included. Null if none were counted.",
    )
    usd_per_1m_tokens_amount = dollars(
        allow_null=True, help_text="exact also of fewer than 1,000,000 tokens"
    )
    previous_amount = dollars(allow_null=True)
    energy_kwh = dollars(
        allow_null=True,
        help_text="Energy of its GPUs, where dcgm-exporter measures it. Null if unknown.",
    )
    energy_gpu_hours = dollars(help_text="the GPU time that `energy_kwh` was measured in")
    idle_amount = dollars(help_text="its part of idle, where idle is shared; not in `amount`")
    change_ratio = serializers.FloatField(allow_null=True)


class UnpricedNodeSerializer(Serializer):
    cluster_name = serializers.CharField()
    node_name = serializers.CharField()
    instance_type = serializers.CharField()
    capacity_type = serializers.CharField()
    region = serializers.CharField()
    hours = serializers.IntegerField(help_text="hours in the period without a price")


class CostPointSerializer(Serializer):
    at = serializers.DateTimeField()
    key = KeySerializer()
    amount = dollars()
    is_estimated = serializers.BooleanField()


class CostsSerializer(Serializer):
    """The amounts of `rows`, the rows of other pages and `idle` sum to `total_amount` exactly. Where idle is
    shared, their `idle_amount` takes the place of `idle`; where it is hidden it is in no amount.
    """

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    start = serializers.DateTimeField(source="table.start")
    end = serializers.DateTimeField(source="table.end")
    rows = CostRowSerializer(
        many=True, source="table.rows", help_text="a page of them, the most expensive first"
    )
    row_count = serializers.IntegerField(
        source="table.row_count", help_text="Number of rows on all pages."
    )
    others_amount = dollars(
        source="table.others_amount", help_text="Cost of the rows on other pages."
    )
    others_idle_amount = dollars(
        source="table.others_idle_amount", help_text="Idle cost shared by the rows on other pages."
    )
    idle = CostRowSerializer(allow_null=True, source="table.idle")
    idle_rule = choice_of(
        IdleRule,
        source="table.idle_rule",
        help_text="`separate` where a shared rule was requested but nothing was held to share it by",
    )
    total_amount = dollars(source="table.total_amount")
    previous_total_amount = dollars(allow_null=True, source="table.previous_total_amount")
    sealed_to = serializers.DateTimeField(allow_null=True, source="table.spend.sealed_to")
    has_demo_data = serializers.BooleanField(source="table.spend.has_demo_data")
    unpriced_count = serializers.IntegerField(help_text="nodes without a price")
    unpriced = UnpricedNodeSerializer(many=True, help_text="the first 50 of them")


class UsagePageSerializer(Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    results = UsageSerializer(many=True)


class CostSeriesSerializer(Serializer):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    results = CostPointSerializer(many=True)


START_HELP: Final = (
    "default: this month. Costs are known by the hour: a period that lasts whole hours is moved back to the hour, any "
    "other is widened to the hours that it touches. The answer states the `start` and `end` that were summed"
)


class SpanSerializer(Serializer):
    start = MomentField(required=False, help_text=START_HELP)
    end = MomentField(required=False)
    team = serializers.CharField(required=False, help_text="one of your teams; default: all")
    group_by = choice_of(GroupBy, default=GroupBy.TEAM)
    step = choice_of(
        Step,
        default=Step.DAY,
        help_text="days are those of the offset from UTC in which `start` is written, such as +05:30",
    )


class CostSpanSerializer(SpanSerializer):
    idle = choice_of(
        IdleRule,
        default=IdleRule.SEPARATE,
        help_text="Idle cost, for platform admins and the whole fleet: a row of its own, left out, or shared by "
        "the groups' cost or GPU time. Clusters share none.",
    )
