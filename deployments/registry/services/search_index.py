"""Write what a version is found by: its text, metrics and labels. Derived; can be written again."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.search import SearchVector
from django.db import connection, transaction
from django.db.models import Value

from deployments.models import ModelVersion, VersionDocument, VersionLabel, VersionMetric
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.selectors.version_search import TEXT_CONFIGURATION


def write(version: ModelVersion) -> None:
    """Replace the rows of the version. Inside the transaction of what changed it."""
    with transaction.atomic(savepoint=False):
        if not VersionDocument.objects.filter(pk=version.pk).update(**_text(version)):
            VersionDocument.objects.create(version=version, **_text(version))
        version.metric_rows.all().delete()
        version.label_rows.all().delete()
        _create_facts(version)


def create(version: ModelVersion) -> None:
    """Create the rows of a new version, which has none. Call inside the transaction that creates it."""
    with transaction.atomic(savepoint=False):
        VersionDocument.objects.bulk_create([VersionDocument(version=version, **_text(version))])
        _create_facts(version)


def _create_facts(version: ModelVersion) -> None:
    metrics = version_metadata.metrics_of(version.metadata)
    labels = version_metadata.labels_of(version.metadata)
    VersionMetric.objects.bulk_create(
        VersionMetric(version=version, name=name.lower(), value=float(value))
        for name, value in metrics.items()
    )
    VersionLabel.objects.bulk_create(
        VersionLabel(version=version, key=key, value=value) for key, value in labels.items()
    )


def _text(version: ModelVersion) -> dict[str, Any]:
    text = text_of(version)
    if connection.vendor != "postgresql":
        return {"text": f"{text}\n{version.readme.lower()}"}
    vector = SearchVector(Value(f"{text}\n{version.readme}"), config=TEXT_CONFIGURATION)
    return {"text": text, "vector": vector}


def text_of(version: ModelVersion) -> str:
    """Return the short text in lower case, whose parts of words are found as well."""
    labels = version_metadata.labels_of(version.metadata).items()
    parts = [
        version.filename,
        version.source_uri,
        version.sha256,
        *version_metadata.metrics_of(version.metadata),
        *(str(version.metadata[key]) for key in version_metadata.TEXTS if key in version.metadata),
        *(version_metadata.format_label(key, value) for key, value in labels),
    ]
    return "\n".join(part for part in parts if part).lower()
