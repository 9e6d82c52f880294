"""Uploads: clients send bytes directly to the object store; the portal signs and tracks the parts.

Start, sign the parts of each file (upload_signing), list stored parts, complete or abandon. Completing
reads the parts from the store, so claims of the client are never trusted. Every call can be repeated.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction

from deployments.models import ArtifactFile, Import, Model, ModelVersion
from deployments.registry.domain import multipart, object_keys
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.gateways import object_store
from deployments.registry.selectors import versions
from deployments.registry.services import (
    file_uploads,
    search_index,
    transitions,
    upload_limits,
    upload_validation,
)
from deployments.registry.services import models as model_service
from deployments.registry.services.file_uploads import PartsState
from deployments.registry.services.upload_validation import UploadDraft
from deployments.states import VersionState
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid

STARTED = register("version.upload_started", "started uploading")
# Without a new signature of parts.
UPLOAD_WITHIN: Final = timedelta(hours=24)
MAX_COMPLETED_AT_ONCE: Final = 100
_NUMBER_TRIES: Final = 5
_EXTEND_AFTER: Final = timedelta(hours=1)
# When the sweep continues a completion that crashed between the store and the row.
_RECHECK_AFTER: Final = timedelta(seconds=30)


def start(*, actor: User, team_slug: str, model_name: str, draft: UploadDraft) -> ModelVersion:
    """Create a version and its files, and the model with its first version. Sends nothing to the store.

    Raises Invalid for names, sizes and metadata; Conflict `same_bytes` if a version of the model
    has the declared files; and Conflict if the team has no storage left. An error leaves no rows.
    """
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    metadata = upload_validation.check(model_name, draft)
    if not draft.is_duplicate_allowed:
        upload_validation.refuse_duplicate(team, model_name, draft)
    token = secrets.token_urlsafe(12)
    row = ModelVersion(
        state=VersionState.UPLOADING,
        filename=artifact_files.display_name([file.path for file in draft.files]),
        declared_size_bytes=draft.size_bytes,
        has_part_checksums=draft.has_part_checksums,
        bucket=object_store.store().bucket,
        upload_prefix=object_keys.upload_prefix(team=team.slug, model=model_name, token=token),
        metadata=metadata,
        readme=draft.readme,
        declared=upload_validation.read_declared(draft),
        created_by=actor,
    )
    return record(row, actor=actor, team=team, model_name=model_name, draft=draft)


def stored_parts(*, actor: User, version_id: int, path: str) -> PartsState:
    """Return the parts of a file that the store has. Raises Conflict if the upload is closed."""
    return file_uploads.parts_state(_file(uploading_version(actor, version_id), path))


def complete_files(*, actor: User, version_id: int, paths: Sequence[str]) -> ModelVersion:
    """Assemble the parts of these files. Raises Conflict `parts_missing`; the upload stays open."""
    version = uploading_version(actor, version_id)
    if not 1 <= len(paths) <= MAX_COMPLETED_AT_ONCE:
        raise Invalid(
            f"Complete 1 to {MAX_COMPLETED_AT_ONCE} files at once.",
            fields={"paths": f"1 to {MAX_COMPLETED_AT_ONCE} paths"},
        )
    for path in paths:
        file_uploads.assemble(_file(version, path))
    return version


def complete(*, actor: User, version_id: int) -> ModelVersion:
    """Assemble the files that are not assembled yet and start the verification. Idempotent.

    Raises Conflict `parts_missing` with the parts to send again; the upload stays open.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    if version.state in (VersionState.VERIFYING, VersionState.READY, VersionState.QUARANTINED):
        return version
    _require_uploading(version)
    _refuse_import(version)
    at = clock.now()
    ModelVersion.objects.filter(pk=version.pk, state=VersionState.UPLOADING).update(
        next_check_at=at + _RECHECK_AFTER
    )
    left = list(version.files.filter(s3_version_id="").select_related("version"))
    if len(left) > MAX_COMPLETED_AT_ONCE:
        raise Conflict(
            f"{len(left):,} files are not complete. Complete them first, {MAX_COMPLETED_AT_ONCE} at "
            "a time.",
            code="files_incomplete",
        )
    for file in left:
        file_uploads.assemble(file)
    return finish(version, actor=actor)


def finish(version: ModelVersion, *, actor: policy.Actor) -> ModelVersion:
    """Start the verification of a version whose files are all stored."""
    try:
        transitions.to_verifying(version=version, actor=actor)
    except Conflict:
        version.refresh_from_db()
        if version.state != VersionState.VERIFYING:
            raise
    return version


def abandon(*, actor: User, version_id: int) -> ModelVersion:
    """Cancel an upload. The next pass deletes its parts."""
    version = _open(actor, version_id)
    transitions.to_failed(
        version=version, actor=actor, reason=f"{actor.username} canceled the upload."
    )
    return version


def record(
    row: ModelVersion, *, actor: User, team: Team, model_name: str, draft: UploadDraft
) -> ModelVersion:
    """Insert the version and its files within the team's limits. An import has no files yet."""
    row.created_at = at = clock.now()
    row.deadline_at = row.next_check_at = at + UPLOAD_WITHIN
    for _ in range(_NUMBER_TRIES):
        try:
            with transaction.atomic():
                # Serialise concurrent starts, so that both do not pass the limit.
                Team.objects.select_for_update().get(pk=team.pk)
                upload_limits.require(team, draft.size_bytes)
                row.model = model_service.get_or_create(
                    actor=actor, team=team, name=model_name, description=draft.description
                )
                row.number = model_service.next_number(row.model)
                row.pk = None
                row.save(force_insert=True)
                search_index.create(row)
                ArtifactFile.objects.bulk_create(_files(row, draft))
                Model.objects.filter(pk=row.model.pk).update(changed_at=at)
                _audit_start(row, actor, draft)
        except IntegrityError:
            # A concurrent request took the number or the model's name.
            continue
        return row
    raise Conflict("Another upload to this model is starting. Try again.", code="busy")


def _files(row: ModelVersion, draft: UploadDraft) -> list[ArtifactFile]:
    return [
        ArtifactFile(
            version=row,
            path=file.path,
            size_bytes=file.size_bytes,
            part_size_bytes=multipart.plan(file.size_bytes).part_bytes,
            declared_sha256=file.sha256,
        )
        for file in draft.files
    ]


def _audit_start(row: ModelVersion, actor: User, draft: UploadDraft) -> None:
    trail.record(
        actor=actor,
        action=STARTED,
        obj=row,
        label=row.label,
        team_slug=row.team.slug,
        after={
            "filename": row.filename,
            "files": len(draft.files),
            "size_bytes": row.declared_size_bytes,
            "sha256": draft.sha256,
        },
    )


def _open(actor: User, version_id: int) -> ModelVersion:
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_uploading(version)
    return version


def uploading_version(actor: User, version_id: int) -> ModelVersion:
    """Return a version that the actor may send files of. Raises NotFound, Forbidden, Conflict."""
    version = _open(actor, version_id)
    _refuse_import(version)
    return version


def _refuse_import(version: ModelVersion) -> None:
    """Raise Conflict for a version that is imported: its files come from where it is imported from, and from
    nowhere else.
    """
    if Import.objects.filter(version=version).exists():
        raise Conflict(
            f"{version.label} is being imported, so no parts can be sent. Cancel the import, or wait "
            "for it.",
            code="importing",
        )


def _require_uploading(version: ModelVersion) -> None:
    if version.state != VersionState.UPLOADING:
        raise Conflict(
            f"{version.label} is {version.state}, so its upload is closed. Start a new version.",
            code="wrong_state",
        )


def _file(version: ModelVersion, path: str) -> ArtifactFile:
    """Return the file at the path. Without a path, the only file of the version."""
    (file,) = files_named(version, [path])
    return file


def files_named(version: ModelVersion, paths: Sequence[str]) -> list[ArtifactFile]:
    """Return the files in the order of the paths, in one query."""
    rows = version.files.select_related("version")
    if any(not path for path in paths):
        only = list(rows[:2])
        if len(only) != 1 or len(paths) != 1:
            raise _no_such_file("")
        return only
    by_path = {file.path: file for file in rows.filter(path__in=paths)}
    if missing := next((path for path in paths if path not in by_path), None):
        raise _no_such_file(missing)
    return [by_path[path] for path in paths]


def _no_such_file(path: str) -> Invalid:
    named = f"The upload has no file {path[:100]}." if path else "Name one of the files."
    return Invalid(named, fields={"path": "one of the files of this upload"})


def extend(version: ModelVersion) -> None:
    """Extend the deadline of an upload: while it makes progress it does not expire."""
    at = clock.now()
    stale = ModelVersion.objects.filter(
        pk=version.pk,
        state=VersionState.UPLOADING,
        deadline_at__lt=at + UPLOAD_WITHIN - _EXTEND_AFTER,
    )
    stale.update(deadline_at=at + UPLOAD_WITHIN)
