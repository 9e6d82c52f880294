"""Metadata in the API: its description, and edits."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers

from portal.api.base_serializer import Serializer

METADATA_HELP: Final = (
    "dataset_version, trained_at, framework, commit, run_url, licence, intended_use and notes are "
    "texts; metrics is an object of numbers, directions of higher or lower (is better) where the "
    "name of a metric does not say it, labels of texts. kv_cache_kib_per_token, at 16 bits, sizes a "
    "language model whose files do not state its KV cache. A number under any other name is a metric, "
    "a text a label"
)


class DescribeVersionSerializer(Serializer):
    metadata = serializers.DictField(
        required=False, help_text="replaces all metadata; " + METADATA_HELP
    )
    readme = serializers.CharField(
        required=False, allow_blank=True, help_text="Markdown; replaces the README"
    )
