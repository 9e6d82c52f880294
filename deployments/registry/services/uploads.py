"""Uploads: clients send bytes directly to the object store; the portal signs and tracks the parts.

Start, sign parts, list stored parts, complete or abandon. Completing reads the parts from the
store, so claims of the client are never trusted. Every call can be repeated.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction

from deployments.models import Model, ModelVersion
from deployments.registry.domain import multipart, object_keys
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import PartsRefused, StoredPart, UploadMissing
from deployments.registry.selectors import versions
from deployments.registry.services import models as model_service
from deployments.registry.services import transitions, upload_limits, upload_validation
from deployments.registry.services.store_errors import translated
from deployments.registry.services.upload_validation import UploadDraft
from deployments.states import VersionState
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, Unavailable

STARTED = register("version.upload_started", "started uploading")
UPLOAD_WITHIN: Final = timedelta(hours=24)
_NUMBER_TRIES: Final = 5
# When the sweep continues a completion that crashed between the store and the row.
_RECHECK_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class PartUrl:
    number: int
    url: str
    size_bytes: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PartsState:
    """The stored parts. `missing` are the numbers to send, including parts of the wrong size."""

    plan: PartPlan
    stored: Sequence[StoredPart]
    missing: Sequence[int]


def start(*, actor: User, team_slug: str, model_name: str, draft: UploadDraft) -> ModelVersion:
    """Open a multipart upload and its version row; create the model with its first version.

    Raises Invalid for names, sizes and metadata; Conflict `same_bytes` if a version of the model
    has the declared SHA-256; and Conflict if the team has no storage left. An error leaves neither
    rows nor an open upload.
    """
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    metadata = upload_validation.check(model_name, draft)
    if draft.sha256 and not draft.is_duplicate_allowed:
        upload_validation.refuse_duplicate(team, model_name, draft.sha256)
    upload_limits.require(team, draft.size_bytes)
    token = secrets.token_urlsafe(12)
    key = object_keys.upload_key(team=team.slug, model=model_name, token=token)
    store = object_store.store()
    with translated():
        upload_id = store.create_upload(key, with_part_checksums=draft.has_part_checksums)
    row = ModelVersion(
        state=VersionState.UPLOADING,
        filename=draft.filename,
        declared_size_bytes=draft.size_bytes,
        declared_sha256=draft.sha256,
        upload_id=upload_id,
        part_size_bytes=multipart.plan(draft.size_bytes).part_bytes,
        has_part_checksums=draft.has_part_checksums,
        bucket=store.bucket,
        key=key,
        metadata=metadata,
        declared=upload_validation.declared_of(draft),
        created_by=actor,
    )
    try:
        return _record(row, actor=actor, team=team, model_name=model_name, draft=draft)
    except Conflict:
        with translated():
            store.abort_upload(key, upload_id)
        raise


def sign_parts(
    *, actor: User, version_id: int, numbers: Sequence[int], checksums: Mapping[int, str]
) -> list[PartUrl]:
    """URLs for one PUT each. `checksums` are base64 SHA-256 by part number."""
    version = _uploading(actor, version_id)
    plan = plan_of(version)
    upload_validation.check_numbers(numbers, plan)
    if version.has_part_checksums and set(numbers) - set(checksums):
        raise Invalid(
            "This upload was opened with part_checksums: send `checksums` for all part numbers.",
            fields={"checksums": "base64 SHA-256 of each part"},
        )
    store = object_store.store()
    urls = []
    for number in numbers:
        checksum = checksums.get(number, "") if version.has_part_checksums else ""
        with translated():
            url = store.presign_part(
                version.key,
                version.upload_id,
                number,
                size_bytes=plan.bytes_of(number),
                sha256_base64=checksum,
            )
        headers = {"x-amz-checksum-sha256": checksum} if checksum else {}
        urls.append(PartUrl(number, url, plan.bytes_of(number), headers))
    return urls


def stored_parts(*, actor: User, version_id: int) -> PartsState:
    """Raises Conflict if the upload is closed."""
    version = _uploading(actor, version_id)
    return _parts_state(version)


def complete(*, actor: User, version_id: int) -> ModelVersion:
    """Assemble the parts and start the verification. Idempotent.

    Raises Conflict `parts_missing` with the parts to send again; the upload stays open.
    """
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    if version.state in (VersionState.VERIFYING, VersionState.READY, VersionState.QUARANTINED):
        return version
    _require_uploading(version)
    ModelVersion.objects.filter(pk=version.pk, state=VersionState.UPLOADING).update(
        next_check_at=clock.now() + _RECHECK_AFTER
    )
    try:
        state = _parts_state(version)
    except Conflict:
        return finish_if_stored(version, actor=actor)
    _require_complete(state)
    try:
        with translated():
            object_store.store().complete_upload(version.key, version.upload_id, list(state.stored))
    except UploadMissing:
        return finish_if_stored(version, actor=actor)
    except PartsRefused as error:
        raise Conflict(
            "Object storage rejected the parts. List the stored parts and send the others again.",
            code="parts_refused",
        ) from error
    return finish_if_stored(version, actor=actor)


def finish_if_stored(version: ModelVersion, *, actor: policy.Actor) -> ModelVersion:
    """Record an assembled upload from the store, even if the request that completed it died."""
    try:
        with translated():
            stored = object_store.store().head(version.key)
    except object_store.ObjectMissing as error:
        raise Conflict(
            "The upload has expired in object storage. Start a new one.",
            code="upload_gone",
        ) from error
    if not stored.version_id:
        raise Unavailable(
            "The bucket has versioning disabled. Ask a platform admin to enable it.",
            code="bucket_not_versioned",
        )
    try:
        transitions.to_verifying(
            version=version,
            actor=actor,
            s3_version_id=stored.version_id,
            size=stored.size_bytes,
        )
    except Conflict:
        # A concurrent request completed it with the same result.
        version.refresh_from_db()
        if version.s3_version_id != stored.version_id:
            raise
    return version


def abandon(*, actor: User, version_id: int) -> ModelVersion:
    """Cancel an upload. The next pass deletes its parts."""
    version = _uploading(actor, version_id)
    transitions.to_failed(
        version=version, actor=actor, reason=f"{actor.username} canceled the upload."
    )
    return version


def plan_of(version: ModelVersion) -> PartPlan:
    return PartPlan(version.declared_size_bytes, version.part_size_bytes)


def _record(
    row: ModelVersion, *, actor: User, team: Team, model_name: str, draft: UploadDraft
) -> ModelVersion:
    at = clock.now()
    row.created_at = at
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
                Model.objects.filter(pk=row.model.pk).update(changed_at=at)
                _audit_start(row, actor)
        except IntegrityError:
            # A concurrent request took the number or the model's name.
            continue
        return row
    raise Conflict("Another upload to this model is starting. Try again.", code="busy")


def _audit_start(row: ModelVersion, actor: User) -> None:
    trail.record(
        actor=actor,
        action=STARTED,
        obj=row,
        label=row.label,
        team_slug=row.team.slug,
        after={
            "filename": row.filename,
            "size_bytes": row.declared_size_bytes,
            "sha256": row.declared_sha256,
        },
    )


def _uploading(actor: User, version_id: int) -> ModelVersion:
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    _require_uploading(version)
    return version


def _require_uploading(version: ModelVersion) -> None:
    if version.state != VersionState.UPLOADING:
        raise Conflict(
            f"{version.label} is {version.state}, so its upload is closed. Start a new version.",
            code="wrong_state",
        )


def _parts_state(version: ModelVersion) -> PartsState:
    try:
        with translated():
            stored = object_store.store().list_parts(version.key, version.upload_id)
    except UploadMissing as error:
        raise Conflict(
            "The upload has expired in object storage. Start a new one.",
            code="upload_gone",
        ) from error
    plan = plan_of(version)
    sizes = {part.number: part.size_bytes for part in stored}
    return PartsState(plan=plan, stored=stored, missing=plan.missing(sizes))


def _require_complete(state: PartsState) -> None:
    sizes = {part.number: part.size_bytes for part in state.stored}
    foreign = state.plan.foreign(sizes)
    if state.missing:
        first = ", ".join(str(number) for number in state.missing[:5])
        more = " …" if len(state.missing) > 5 else ""
        raise Conflict(
            f"{len(state.missing)} of {state.plan.count} parts are missing or have the wrong "
            f"size: {first}{more}. Send them and complete again.",
            code="parts_missing",
        )
    if foreign:
        raise Conflict(
            f"Parts {foreign[:5]} do not belong to this file of {state.plan.count} parts. "
            "Cancel the upload and start again.",
            code="parts_foreign",
        )
