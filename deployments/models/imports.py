"""Imports: jobs that fill a version from a bucket, an address, an MLflow registry or Hugging Face."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.registry import ArtifactFile, ModelVersion
from deployments.states import ImportKind, ImportState
from portal.core.leases import Leased


class Import(Leased):
    """The import that fills one version in state uploading. It is kept as the origin of the version.

    Its rows of ImportedFile are written when the source was listed; until then there are none.
    """

    version = models.OneToOneField(
        ModelVersion, on_delete=models.CASCADE, related_name="source_import"
    )
    kind = models.CharField(max_length=12, choices=[(k.value, k.value) for k in ImportKind])
    # For people: without the query, the user and the password of a URL.
    address = models.CharField(max_length=1200)
    # The name of the configured MLflow server; empty for other kinds.
    server = models.CharField(max_length=40, blank=True, default="")
    # The commit, or the version that an alias named, when the source was listed.
    pin = models.CharField(max_length=200, blank=True, default="")
    # What the source says about the model beyond the metadata of its version.
    facts = models.JSONField(default=dict, blank=True)
    # A URL as it was entered, encrypted because its query can be a credential. Empty once it ended.
    sealed_url = models.TextField(blank=True, default="")
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in ImportState],
        default=ImportState.RUNNING.value,
    )
    # Why it failed, or waits to be retried, with the fix.
    error = models.TextField(blank=True, default="")
    # The source changed after it was listed: resuming lists it again.
    is_outdated = models.BooleanField(default=False)
    copied_bytes = models.BigIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.version.label} from {self.address}"


class ImportedFile(models.Model):
    """The origin of a file of a version.

    `locator` is its key, or its path on the server. `version_id` and `etag` identify the bytes that
    were listed there; both are empty if the source offers neither.
    """

    file = models.OneToOneField(
        ArtifactFile, on_delete=models.CASCADE, primary_key=True, related_name="origin"
    )
    locator = models.CharField(max_length=1200)
    version_id = models.CharField(max_length=200, blank=True, default="")
    etag = models.CharField(max_length=300, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.file} from {self.locator}"
