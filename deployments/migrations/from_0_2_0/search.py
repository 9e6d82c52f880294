"""The search index of versions, as deployments.registry.services.search_index writes it of today's rows."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.search import SearchVector
from django.db.models import Value

from deployments.migrations.from_0_2_0 import versions

_CONFIGURATION = "english"


def write(apps: Any, schema_editor: Any, version: Any) -> None:
    """Write the document, the metrics and the labels of a version."""
    metadata = version.metadata
    labels = dict(sorted(metadata.get("labels", {}).items()))
    metrics = dict(sorted(metadata.get("metrics", {}).items(), key=_accuracy_first))
    texts = [metadata[key] for key in versions.TEXTS if key in metadata]
    pairs = [f"{key}={value}" if value else key for key, value in labels.items()]
    parts = [version.filename, version.source_uri, version.sha256, *metrics, *texts, *pairs]
    text = "\n".join(part for part in parts if part).lower()
    # SQLite has the README in the same column; 0.2.0 had none.
    document: dict[str, Any] = {"version_id": version.pk, "text": f"{text}\n"}
    if schema_editor.connection.vendor == "postgresql":
        document["text"] = text
        document["vector"] = SearchVector(Value(text), config=_CONFIGURATION)
    apps.get_model("deployments", "VersionDocument").objects.create(**document)
    metric, label = (
        apps.get_model("deployments", name) for name in ("VersionMetric", "VersionLabel")
    )
    metric.objects.bulk_create(
        metric(version_id=version.pk, name=name.lower(), value=float(value))
        for name, value in metrics.items()
    )
    label.objects.bulk_create(
        label(version_id=version.pk, key=key, value=value) for key, value in labels.items()
    )


def _accuracy_first(metric: tuple[str, float]) -> tuple[bool, str]:
    return metric[0] != "accuracy", metric[0]
