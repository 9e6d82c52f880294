"""The multipart upload of one file: open it, list its parts, assemble it. Every call can be repeated.

The store may need minutes to assemble a large file. The row says until when that may be, so that neither a
retry nor another worker sends the request again, or takes the file for lost, while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from deployments.models.multipart import MultipartFile
from deployments.registry.domain.multipart import PartPlan
from deployments.registry.gateways import multipart_completion, object_store
from deployments.registry.gateways.object_store import (
    ObjectMissing,
    PartsRefused,
    StillAssembling,
    StoredPart,
    UploadMissing,
)
from deployments.registry.services.store_errors import translate_errors
from portal.core import clock
from portal.core.errors import Conflict, Unavailable

_MAX_LISTED: Final = 5
_ASK_AGAIN_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class PartsState:
    """The stored parts. `missing` are the numbers to send, including parts of the wrong size."""

    plan: PartPlan
    stored: Sequence[StoredPart] = ()
    is_assembled: bool = False
    is_assembling: bool = False

    @property
    def missing(self) -> list[int]:
        sizes = {part.number: part.size_bytes for part in self.stored}
        return [] if self.is_assembled or self.is_assembling else self.plan.missing(sizes)


def _rows(file: MultipartFile) -> QuerySet[MultipartFile]:
    """Return the row of the file, of whatever it is a file of."""
    return type(file)._default_manager.filter(pk=file.pk)


def plan_of(file: MultipartFile) -> PartPlan:
    return PartPlan(file.size_bytes, file.part_size_bytes)


def open_upload(file: MultipartFile, *, with_part_checksums: bool) -> None:
    """Open the file's multipart upload in the store, unless one is open. Of two at once, one stays."""
    if file.upload_id:
        return
    store = object_store.store()
    with translate_errors():
        upload_id = store.create_upload(file.key, with_part_checksums=with_part_checksums)
    rows = _rows(file).filter(upload_id="", s3_version_id="")
    if rows.update(upload_id=upload_id) == 0:
        with translate_errors():
            store.abort_upload(file.key, upload_id)
        file.refresh_from_db()
        return
    file.upload_id = upload_id


def parts_state(file: MultipartFile) -> PartsState:
    """Return the parts of the file. An upload that the store has dropped is forgotten: all its parts are
    missing again.
    """
    if file.s3_version_id:
        return PartsState(plan_of(file), is_assembled=True)
    if not file.upload_id:
        return PartsState(plan_of(file))
    if is_assembling(file):
        is_assembled = _record(file)
        return PartsState(plan_of(file), is_assembled=is_assembled, is_assembling=not is_assembled)
    try:
        with translate_errors():
            return PartsState(
                plan_of(file), object_store.store().list_parts(file.key, file.upload_id)
            )
    except UploadMissing:
        return PartsState(plan_of(file), is_assembled=record_if_stored(file))


def is_assembling(file: MultipartFile) -> bool:
    """Whether the store may be assembling the parts now."""
    until = file.assembly_deadline_at
    return until is not None and until > clock.now()


def assemble(file: MultipartFile) -> None:
    """Assemble the parts into the object.

    Raises Conflict with the parts that are missing, and Unavailable `assembling` while the store is at
    work: call it again then.
    """
    state = parts_state(file)
    if state.is_assembled:
        return
    if state.is_assembling:
        raise _assembling(file)
    _require_complete(file, state)
    _complete(file, state)
    if not record_if_stored(file):
        raise Conflict(
            f"The upload of {file.path} has expired in object storage. Send the file again.",
            code="parts_missing",
        )


def _complete(file: MultipartFile, state: PartsState) -> None:
    """Ask the store to assemble the file, in one request of one caller. Only an answer of the store ends the
    time in which it is not repeated.
    """
    if not _claim(file):
        raise _assembling(file)
    try:
        with translate_errors():
            object_store.store().complete_upload(file.key, file.upload_id, list(state.stored))
    except UploadMissing:
        return
    except PartsRefused as error:
        _end_claim(file)
        raise Conflict(
            f"Object storage rejected the parts of {file.path}. List the stored parts and send the "
            "others again.",
            code="parts_refused",
        ) from error
    except Unavailable as error:
        if isinstance(error.__cause__, StillAssembling):
            raise _assembling(file) from error
        _end_claim(file)
        raise


def _claim(file: MultipartFile) -> bool:
    at = clock.now()
    until = at + multipart_completion.assemble_within(file.size_bytes)
    is_free = Q(assembly_deadline_at=None) | Q(assembly_deadline_at__lte=at)
    rows = _rows(file).filter(is_free, upload_id=file.upload_id)
    if rows.update(assembly_deadline_at=until) == 0:
        return False
    file.assembly_deadline_at = until
    return True


def _end_claim(file: MultipartFile) -> None:
    rows = _rows(file).filter(assembly_deadline_at=file.assembly_deadline_at)
    rows.update(assembly_deadline_at=None)
    file.assembly_deadline_at = None


def _assembling(file: MultipartFile) -> Unavailable:
    return Unavailable(
        f"Object storage is assembling {file.path}. That can take minutes for a large file; nothing "
        "has to be sent again.",
        code="assembling",
        retry_after_seconds=_ASK_AGAIN_SECONDS,
    )


def record_if_stored(file: MultipartFile) -> bool:
    """Record an assembled upload from the store, even if the request that completed it died.

    Without an object, the upload is gone: forget it, so that the file can be sent again.
    """
    if _record(file):
        return True
    _write(file, s3_version_id="")
    return False


def _record(file: MultipartFile) -> bool:
    try:
        with translate_errors():
            stored = object_store.store().head(file.key)
    except ObjectMissing:
        return False
    if not stored.version_id:
        raise Unavailable(
            "The bucket has versioning disabled. Ask a platform admin to enable it.",
            code="bucket_not_versioned",
        )
    _write(file, s3_version_id=stored.version_id)
    return True


def _write(file: MultipartFile, *, s3_version_id: str) -> None:
    """Store the outcome of an assembly. Of two at once, the first decides which object the file is."""
    fields = {"upload_id": "", "s3_version_id": s3_version_id, "assembly_deadline_at": None}
    if _rows(file).filter(s3_version_id="").update(**fields) == 0:
        file.refresh_from_db()
        return
    file.upload_id, file.s3_version_id, file.assembly_deadline_at = "", s3_version_id, None


def _require_complete(file: MultipartFile, state: PartsState) -> None:
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
