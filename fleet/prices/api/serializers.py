"""Prices in the API."""

from __future__ import annotations

from rest_framework import serializers

from fleet.gpus.domain import capacity_types
from portal.api.base_serializer import Serializer, dollars


class PriceSerializer(Serializer):
    instance_type = serializers.CharField()
    region = serializers.CharField()
    capacity_type = serializers.CharField()
    usd_per_hour_amount = dollars()
    gpu_name = serializers.CharField()
    gpu_count = serializers.IntegerField()
    gpu_memory_mib = serializers.IntegerField()
    is_mig_capable = serializers.BooleanField()
    vcpu = serializers.IntegerField()
    memory_gib = serializers.IntegerField()
    price_source = serializers.CharField(source="source")
    valid_from = serializers.DateField()


class PriceRowSerializer(Serializer):
    """A line of a price list. The hardware may be left out for types that are listed or run now."""

    instance_type = serializers.CharField(max_length=40)
    region = serializers.CharField(max_length=30)
    capacity_type = serializers.ChoiceField(
        choices=list(capacity_types.LABELS), default=capacity_types.ON_DEMAND
    )
    usd_per_hour = serializers.CharField(
        max_length=20,
        help_text="Price of a whole node. For own hardware, of a node with gpu_count GPUs.",
    )
    valid_from = serializers.DateField(required=False, help_text="left out: today")
    price_source = serializers.CharField(max_length=200, required=False)
    gpu_name = serializers.CharField(max_length=30, required=False)
    gpu_count = serializers.IntegerField(min_value=1, required=False)
    gpu_memory_mib = serializers.IntegerField(min_value=0, required=False)
    is_mig_capable = serializers.BooleanField(required=False)
    vcpu = serializers.IntegerField(min_value=0, required=False)
    memory_gib = serializers.IntegerField(min_value=0, required=False)
    allocatable_cpu = serializers.CharField(max_length=20, required=False)
    allocatable_memory = serializers.CharField(max_length=20, required=False)


class PriceListSerializer(Serializer):
    prices = serializers.ListField(child=PriceRowSerializer(), max_length=1000)


class LoadedSerializer(Serializer):
    prices = serializers.IntegerField(help_text="how many were read")
    new = serializers.IntegerField(help_text="Number of them for a day that had no price.")
    unpriced = serializers.ListField(child=serializers.CharField())
