"""Models, their immutable versions, and the movable names that point to versions."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.multipart import MultipartFile
from deployments.states import VersionState
from portal.accounts.models import Team
from portal.core.leases import Leased


class Model(models.Model):
    """A named line of versions inside a team: vision/detector."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="models")
    name = models.CharField(max_length=40)
    description = models.TextField(blank=True, default="")
    task = models.CharField(max_length=60, blank=True, default="")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["team__slug", "name"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_model_per_name")]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.name}"


class ModelVersion(Leased):
    """An artifact of one or many files (ArtifactFile) and what is known of it.

    `sha256` identifies it (deployments.registry.domain.artifacts.files.identity).
    `deadline_at` ends uploading and verifying; on a released version it ends the release.
    Everything about the bytes is frozen once the version is ready.

    A version by reference has a `source_uri` (deployments/registry/domain/external_weights.py) in
    place of bytes: it is ready from its registration, and everything of the file, the bucket and
    the upload stays empty.
    """

    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=[(s.value, s.value) for s in VersionState])
    # Why it is quarantined or failed, with the fix.
    state_reason = models.TextField(blank=True, default="")
    deadline_at = models.DateTimeField(null=True, blank=True)

    source_uri = models.CharField(max_length=300, blank=True, default="")

    # What people call the artifact: the name of its one file, or of the folder.
    filename = models.CharField(max_length=200)
    format = models.CharField(max_length=20, blank=True, default="")
    # The sum over all files.
    declared_size_bytes = models.BigIntegerField()
    # The client sends a SHA-256 with every part; S3 rejects a part that does not match.
    has_part_checksums = models.BooleanField(default=False)

    bucket = models.CharField(max_length=63)
    # The prefix of the uploaded files, unique for each upload; ends with "/".
    upload_prefix = models.CharField(max_length=200, blank=True, default="")
    size_bytes = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True, default="", db_index=True)
    # Of the archive that the files were unpacked from.
    archive_sha256 = models.CharField(max_length=64, blank=True, default="", db_index=True)

    # deployments.registry.domain.signatures.Signature, with the parts of
    # deployments.sizing.domain.onnx.VramEstimate as "vram_parts_mib".
    signature = models.JSONField(default=dict)
    # deployments.registry.domain.metadata.version_metadata; the size of external weights is read by
    # deployments.sizing.domain.declared_size.
    metadata = models.JSONField(default=dict)
    # Markdown. Not part of what is approved.
    readme = models.TextField(blank=True, default="")
    # deployments.registry.domain.verification_steps.VerificationStep, in order.
    checks = models.JSONField(default=list)
    # deployments.registry.domain.scanning.verdicts.ScanReport; empty before the first scan.
    scan = models.JSONField(default=dict)
    # The engines of that scan, to select what must be scanned again when one changes.
    scan_engines = models.CharField(max_length=200, blank=True, default="", db_index=True)
    # deployments.registry.domain.scanning.releases.Release; empty if it was never released.
    release = models.JSONField(default=dict)
    vram_estimate_mib = models.PositiveIntegerField(null=True)
    # Deaths of the reader process; the second one fails the version.
    examination_deaths = models.PositiveSmallIntegerField(default=0)
    # A discarded upload is hidden, and deleted by the next pass.
    discarded_at = models.DateTimeField(null=True, blank=True)
    # deployments.registry.domain.declarations.Declaration; empty declares nothing.
    declared = models.JSONField(default=dict)
    # While a ready version is verified again: deployments.registry.domain.verification_steps
    # .FormerVerification, restored if there is no verdict. Empty otherwise.
    former = models.JSONField(default=dict)
    # The immutable Triton repository laid out from exactly these bytes; ends with "/".
    repository_prefix = models.CharField(max_length=400, blank=True, default="")
    config_pbtxt = models.TextField(blank=True, default="")
    # deployments.registry.domain.serving_objects.ServingObject: the objects of the serving repository,
    # recorded when their digests were verified, and part of what is approved.
    laid_out = models.JSONField(default=list)

    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="one_version_per_number"),
            models.UniqueConstraint(
                fields=["model", "source_uri"],
                condition=~models.Q(source_uri=""),
                name="one_version_per_reference",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model}:{self.number}"

    @property
    def team(self) -> Team:
        return self.model.team

    @property
    def label(self) -> str:
        return f"{self.model.name}:{self.number}"

    @property
    def model_name(self) -> str:
        return self.model.name

    @property
    def team_slug(self) -> str:
        return self.model.team.slug

    @property
    def creator(self) -> str:
        return self.created_by.username

    @property
    def storage_uri(self) -> str:
        """The URI that serving reads: the parent of the Triton model directory, ending with "/". For a version
        by reference, the URI of its weights.
        """
        return self.source_uri or f"s3://{self.bucket}/{self.repository_prefix}"


class ArtifactFile(MultipartFile):
    """A file of a version, uploaded as a multipart upload of its own.

    `declared_sha256` is the client's promise, `sha256` the worker's own digest over the stored object, which decides.
    """

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="files")
    # Relative to the artifact, with "/" (deployments.registry.domain.artifacts.files).
    path = models.CharField(max_length=512)
    declared_sha256 = models.CharField(max_length=64, blank=True, default="")
    sha256 = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["version", "path"], name="one_file_per_path"),
        ]

    def __str__(self) -> str:
        return f"{self.version.label}/{self.path}"

    @property
    def key(self) -> str:
        return f"{self.version.upload_prefix}{self.path}"


class Alias(models.Model):
    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=40)
    version = models.ForeignKey(ModelVersion, on_delete=models.PROTECT, related_name="aliases")
    is_protected = models.BooleanField(default=False)
    moved_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="one_alias_per_name")]

    def __str__(self) -> str:
        return f"{self.model}@{self.name}"
