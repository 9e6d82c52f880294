"""Serializers of a scan and of a release from quarantine."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deployments.models import ModelVersion
from deployments.registry.domain.scanning import releases, verdicts
from deployments.registry.domain.scanning.verdicts import ScanOutcome
from portal.api.base_serializer import Serializer, choice_of


class ScannerVerdictSerializer(Serializer):
    scanner = serializers.CharField()
    version = serializers.CharField(
        help_text="Version of the scanner. Empty if it is not installed."
    )
    outcome = choice_of(ScanOutcome)
    findings = serializers.ListField(
        child=serializers.CharField(), help_text="Code that loading the file would run."
    )
    problem = serializers.CharField(help_text="why the file could not be scanned")


class FileScanSerializer(Serializer):
    path = serializers.CharField()
    outcome = choice_of(ScanOutcome)
    verdicts = ScannerVerdictSerializer(many=True)


class ScanSerializer(Serializer):
    at = serializers.DateTimeField()
    engines = serializers.DictField(
        child=serializers.CharField(), help_text="versions by the scanner's name"
    )
    outcome = choice_of(ScanOutcome)
    file_count = serializers.IntegerField()
    files = FileScanSerializer(many=True)


class GrantedReleaseSerializer(Serializer):
    by = serializers.CharField()
    reason = serializers.CharField()
    until = serializers.DateTimeField()


class ScannedVersionSerializer(Serializer):
    """The scan of a version and its release from quarantine."""

    scan = serializers.SerializerMethodField()
    release = serializers.SerializerMethodField()

    @extend_schema_field(ScanSerializer(allow_null=True))
    def get_scan(self, version: ModelVersion) -> Any:
        """The scan. Null before the first one."""
        report = verdicts.from_json(version.scan)
        return None if report is None else ScanSerializer(report).data

    @extend_schema_field(GrantedReleaseSerializer(allow_null=True))
    def get_release(self, version: ModelVersion) -> Any:
        """The last release from quarantine, also after its end. Null if there was none."""
        release = releases.from_json(version.release)
        return None if release is None else GrantedReleaseSerializer(release).data
