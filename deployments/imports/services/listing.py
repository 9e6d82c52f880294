"""Write down what a source has: the files of the version, and what the source says about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from deployments.imports.domain.listing import Listing
from deployments.imports.services.progress import Stopped
from deployments.imports.services.sources import ImportSource
from deployments.models import ArtifactFile, Import, ImportedFile, ModelVersion
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.services import search_index, upload_limits, upload_validation
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from deployments.states import ImportState, VersionState
from portal.accounts.models import Team
from portal.core.leases import Lease


def record(job: Import, lease: Lease, source: ImportSource, listing: Listing) -> None:
    """Store the listing with the version. Raises Invalid for files that cannot be a version, Conflict if the
    team's storage is full.
    """
    version = job.version
    draft = _draft_of(version, listing)
    draft_metadata = upload_validation.check(version.model.name, draft)
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=version.model.team_id)
        held = Import.objects.filter(
            pk=job.pk,
            lease_token=lease.token,
            state=ImportState.RUNNING,
            version__state=VersionState.UPLOADING,
        )
        if not held.exists() or version.files.exists():
            raise Stopped
        upload_limits.require_storage(version.team, draft.size_bytes)
        version.filename = artifact_files.display_name([file.path for file in draft.files])
        version.declared_size_bytes = draft.size_bytes
        version.metadata, version.readme = draft_metadata, draft.readme
        version.declared = upload_validation.read_declared(draft)
        version.save(
            update_fields=["filename", "declared_size_bytes", "metadata", "readme", "declared"]
        )
        _write_files(version, source, listing)
        search_index.write(version)
        job.pin, job.facts, job.is_outdated = listing.pin, dict(listing.facts), False
        job.save(update_fields=["pin", "facts", "is_outdated"])


def _draft_of(version: ModelVersion, listing: Listing) -> UploadDraft:
    """Make the draft of a version: what the uploader entered is kept, and the source adds what is missing."""
    return UploadDraft(
        files=[DraftFile(file.path, file.size_bytes, file.sha256) for file in listing.files],
        metadata=_merged(listing.metadata, version.metadata),
        readme=version.readme or listing.readme,
        declared=version.declared or listing.declared,
    )


def _merged(of_source: Mapping[str, Any], entered: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**of_source, **entered}
    for group in (version_metadata.METRICS, version_metadata.LABELS, version_metadata.DIRECTIONS):
        if both := {**of_source.get(group, {}), **entered.get(group, {})}:
            merged[group] = both
    return merged


def _write_files(version: ModelVersion, source: ImportSource, listing: Listing) -> None:
    rows = ArtifactFile.objects.bulk_create(
        ArtifactFile(
            version=version,
            path=file.path,
            size_bytes=file.size_bytes,
            part_size_bytes=source.part_bytes(file.size_bytes),
            declared_sha256=file.sha256,
        )
        for file in listing.files
    )
    ImportedFile.objects.bulk_create(
        ImportedFile(file=row, locator=file.locator, version_id=file.version_id, etag=file.etag)
        for row, file in zip(rows, listing.files, strict=True)
    )
