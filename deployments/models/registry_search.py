"""The search index of versions. deployments.registry.services.search_index derives it from their rows."""

from __future__ import annotations

from django.contrib.postgres.search import SearchVectorField
from django.db import models

from deployments.models.registry import ModelVersion


class VersionDocument(models.Model):
    """The text of a version, in lower case, and its vector for full-text search.

    SQLite has no vectors: there `text` has the README too. Indexes of PostgreSQL are in the second
    migration.
    """

    version = models.OneToOneField(
        ModelVersion, on_delete=models.CASCADE, primary_key=True, related_name="document"
    )
    text = models.TextField()
    vector = SearchVectorField(null=True)

    def __str__(self) -> str:
        return f"document of version {self.pk}"


class VersionMetric(models.Model):
    """A number of a version's metadata, for filters and order. `name` is in lower case."""

    version = models.ForeignKey(
        ModelVersion, on_delete=models.CASCADE, related_name="metric_rows", db_index=False
    )
    name = models.CharField(max_length=80)
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "name"], name="one_metric_per_name")
        ]
        indexes = [models.Index(fields=["name", "value"], name="metrics_by_value")]

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


class VersionLabel(models.Model):
    """A label of a version's metadata."""

    version = models.ForeignKey(
        ModelVersion, on_delete=models.CASCADE, related_name="label_rows", db_index=False
    )
    key = models.CharField(max_length=63)
    value = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "key"], name="one_label_per_key")]
        indexes = [models.Index(fields=["key", "value"], name="labels_by_value")]

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key
