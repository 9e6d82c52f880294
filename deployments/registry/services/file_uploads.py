"""The multipart upload of one file: open it, list its parts, assemble it. Every call can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deployments.models import ArtifactFile
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import (
    ObjectMissing,
    PartsRefused,
    StoredPart,
    UploadMissing,
)
from deployments.registry.services.store_errors import translated
from portal.core.errors import Conflict, Unavailable

_MAX_LISTED: Final = 5


@dataclass(frozen=True, slots=True)
class PartsState:
    """The stored parts. `missing` are the numbers to send, including parts of the wrong size."""

    plan: PartPlan
    stored: Sequence[StoredPart] = ()
    is_assembled: bool = False

    @property
    def missing(self) -> list[int]:
        sizes = {part.number: part.size_bytes for part in self.stored}
        return [] if self.is_assembled else self.plan.missing(sizes)


def plan_of(file: ArtifactFile) -> PartPlan:
    return PartPlan(file.size_bytes, file.part_size_bytes)


def open_upload(file: ArtifactFile, *, with_part_checksums: bool) -> None:
    """Open the file's multipart upload in the store, unless one is open. Of two at once, one stays."""
    if file.upload_id:
        return
    store = object_store.store()
    with translated():
        upload_id = store.create_upload(file.key, with_part_checksums=with_part_checksums)
    rows = ArtifactFile.objects.filter(pk=file.pk, upload_id="", s3_version_id="")
    if rows.update(upload_id=upload_id) == 0:
        with translated():
            store.abort_upload(file.key, upload_id)
        file.refresh_from_db()
        return
    file.upload_id = upload_id


def parts_state(file: ArtifactFile) -> PartsState:
    """An upload that the store has dropped is forgotten: all its parts are missing again."""
    if file.s3_version_id:
        return PartsState(plan_of(file), is_assembled=True)
    if not file.upload_id:
        return PartsState(plan_of(file))
    try:
        with translated():
            return PartsState(
                plan_of(file), object_store.store().list_parts(file.key, file.upload_id)
            )
    except UploadMissing:
        return PartsState(plan_of(file), is_assembled=record_if_stored(file))


def assemble(file: ArtifactFile) -> None:
    """Assemble the parts into the object. Raises Conflict with the parts that are missing."""
    state = parts_state(file)
    if state.is_assembled:
        return
    _require_complete(file, state)
    try:
        with translated():
            object_store.store().complete_upload(file.key, file.upload_id, list(state.stored))
    except UploadMissing:
        pass
    except PartsRefused as error:
        raise Conflict(
            f"Object storage rejected the parts of {file.path}. List the stored parts and send the "
            "others again.",
            code="parts_refused",
        ) from error
    if not record_if_stored(file):
        raise Conflict(
            f"The upload of {file.path} has expired in object storage. Send the file again.",
            code="parts_missing",
        )


def record_if_stored(file: ArtifactFile) -> bool:
    """Record an assembled upload from the store, even if the request that completed it died.

    Without an object, the upload is gone: forget it, so that the file can be sent again.
    """
    try:
        with translated():
            stored = object_store.store().head(file.key)
    except ObjectMissing:
        _write(file, upload_id="", s3_version_id="")
        return False
    if not stored.version_id:
        raise Unavailable(
            "The bucket has versioning disabled. Ask a platform admin to enable it.",
            code="bucket_not_versioned",
        )
    _write(file, upload_id="", s3_version_id=stored.version_id)
    return True


def _write(file: ArtifactFile, *, upload_id: str, s3_version_id: str) -> None:
    """Of two that assemble at once, the first decides which object it is."""
    rows = ArtifactFile.objects.filter(pk=file.pk, s3_version_id="")
    if rows.update(upload_id=upload_id, s3_version_id=s3_version_id) == 0:
        file.refresh_from_db()
        return
    file.upload_id, file.s3_version_id = upload_id, s3_version_id


def _require_complete(file: ArtifactFile, state: PartsState) -> None:
    missing = state.missing
    if missing:
        first = ", ".join(str(number) for number in missing[:_MAX_LISTED])
        more = " …" if len(missing) > _MAX_LISTED else ""
        raise Conflict(
            f"{file.path}: {len(missing)} of {state.plan.count} parts are missing or have the wrong "
            f"size: {first}{more}. Send them and complete again.",
            code="parts_missing",
        )
    foreign = state.plan.foreign({part.number: part.size_bytes for part in state.stored})
    if foreign:
        raise Conflict(
            f"Parts {foreign[:_MAX_LISTED]} do not belong to {file.path} of {state.plan.count} "
            "parts. Cancel the upload and start again.",
            code="parts_foreign",
        )
