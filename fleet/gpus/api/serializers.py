"""Prices in the API."""

from __future__ import annotations

from rest_framework import serializers

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
