"""Unpack an uploaded archive into the files of its version, as a stream.

The sandbox reads the archive and sends each file; the worker writes it to the object store. The
archive is replaced by its files in one transaction, so a crash before it starts from the beginning.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import transaction

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.domain import multipart, object_keys
from deployments.registry.domain.artifacts import archives
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.gateways.object_writer import ObjectWriter, WrittenObject
from deployments.registry.gateways.sandbox_artifact import Access
from deployments.registry.gateways.stored_artifact import StoredArtifact
from deployments.registry.services import transitions, upload_limits
from deployments.registry.services.examination import sandboxed_steps, stored_files
from deployments.registry.services.examination.checklist import Checklist, LeaseLost
from deployments.registry.services.examination.sandboxed_steps import refuse_step
from deployments.states import VersionState
from portal.core import clock

_STEP: Final = "Format"
_TASKS: Final = archives.__name__
_GIB: Final = 2**30
# Weights hardly compress; what grows more is an attack or an accident.
_MAX_GROWTH: Final = 20
# An archive is read once, and its directory again.
_READ_SLACK_BYTES: Final = 256 * 2**20


def unpack_if_archive(
    version: ModelVersion, artifact: StoredArtifact, checklist: Checklist
) -> bool:
    """Whether the version was an archive and has new files now. Raises FileRefused."""
    if not _is_archive(version, artifact, checklist):
        return False
    file = version.files.select_related("version").get()
    # The archive has to be what was declared before its content counts.
    stored_files.check_digests(artifact.store, version, [file], checklist, copies={})
    checklist.running(_STEP, "unpacking the archive")
    prefix = object_keys.unpacked_prefix(version.upload_prefix)
    artifact.store.abort_uploads(prefix)
    artifact.store.delete_all_versions(prefix)
    sink = _Sink(artifact, prefix, _most_bytes(version, file.size_bytes), checklist)
    sandboxed_steps.run(
        f"{_TASKS}:unpack",
        None,
        version=version,
        step=_STEP,
        checklist=checklist,
        argument={"main": file.path},
        access=Access(artifact, 2 * file.size_bytes + _READ_SLACK_BYTES, sink),
        file_bytes=file.size_bytes,
    )
    _replace(version, file, prefix, sink.written, checklist)
    remove_archive(version, artifact)
    return True


def remove_archive(version: ModelVersion, artifact: StoredArtifact) -> None:
    """Delete the archive's object after its files have replaced it, also after a crash in between."""
    if object_keys.is_unpacked(version.upload_prefix):
        root = object_keys.upload_root(version.upload_prefix)
        artifact.store.delete_all_versions(f"{root}{version.filename}")


def _is_archive(version: ModelVersion, artifact: StoredArtifact, checklist: Checklist) -> bool:
    if len(artifact.objects) != 1 or object_keys.is_unpacked(version.upload_prefix):
        return False
    path = next(iter(artifact.objects))
    if not archives.kind_of(artifact.read(path, 0, archives.HEAD_BYTES)):
        return False
    checklist.running(_STEP, "reading the archive")
    return bool(
        sandboxed_steps.run(
            f"{_TASKS}:is_additional",
            None,
            version=version,
            step=_STEP,
            checklist=checklist,
            argument={"main": path},
            access=Access(artifact),
        )
    )


def _most_bytes(version: ModelVersion, archive_bytes: int) -> int:
    left = upload_limits.count_bytes_left(version.team) + archive_bytes
    growth = _GIB + _MAX_GROWTH * archive_bytes
    return min(left, growth, settings.SLIPWAY_MAX_VERSION_BYTES)


class _Sink:
    """A receiver that writes the files that the sandbox sends, and trusts nothing of it."""

    def __init__(
        self, artifact: StoredArtifact, prefix: str, most_bytes: int, checklist: Checklist
    ) -> None:
        self.written: dict[str, WrittenObject] = {}
        self._store, self._prefix, self._checklist = artifact.store, prefix, checklist
        self._most_bytes = most_bytes
        self._total = 0
        self._path = ""
        self._writer: ObjectWriter | None = None

    def begin(self, path: str) -> None:
        self.end()
        problem = artifact_files.path_problem(path)
        if len(self.written) >= artifact_files.MAX_FILES:
            problem = f"The archive contains more than {artifact_files.MAX_FILES:,} files."
        if problem or path in self.written:
            raise refuse_step(
                self._checklist, _STEP, problem or f"The archive contains {path} twice."
            )
        self._path, self._writer = path, ObjectWriter(self._store, f"{self._prefix}{path}")

    def write(self, chunk: bytes) -> None:
        self._checklist.keep_alive()
        self._total += len(chunk)
        if self._total > self._most_bytes:
            raise refuse_step(
                self._checklist,
                _STEP,
                f"The archive unpacks to more than {self._most_bytes / _GIB:,.1f} GiB, which is too "
                "much for its size or for what the team has left. Upload the folder instead.",
            )
        if self._writer is None:
            return
        limit = settings.SLIPWAY_MAX_UPLOAD_BYTES
        if self._writer.size_bytes + len(chunk) > limit:
            raise refuse_step(
                self._checklist,
                _STEP,
                f"{self._path} is larger than the limit of {limit // _GIB:,} GiB for a file.",
            )
        self._writer.write(chunk)

    def end(self) -> None:
        if self._writer is not None:
            self.written[self._path] = self._writer.finish()
            count = len(self.written)
            self._checklist.running(_STEP, f"unpacking the archive, {count:,} files so far")
        self._writer = None


def _replace(
    version: ModelVersion,
    archive: ArtifactFile,
    prefix: str,
    written: dict[str, WrittenObject],
    checklist: Checklist,
) -> None:
    total = sum(item.size_bytes for item in written.values())
    folder, by_path = artifact_files.without_common_folders(list(written))
    fields = {
        "upload_prefix": f"{prefix}{folder}",
        "archive_sha256": archive.sha256,
        "declared_size_bytes": total,
        "size_bytes": total,
        "deadline_at": clock.now() + transitions.verify_within(total),
    }
    with transaction.atomic():
        rows = ModelVersion.objects.filter(
            pk=version.pk, state=VersionState.VERIFYING, lease_token=checklist.lease.token
        )
        if rows.update(**fields) != 1:
            raise LeaseLost
        version.files.all().delete()
        ArtifactFile.objects.bulk_create(
            ArtifactFile(
                version=version,
                path=path,
                size_bytes=item.size_bytes,
                part_size_bytes=multipart.plan(item.size_bytes).part_bytes,
                s3_version_id=item.version_id,
                sha256=item.sha256,
            )
            for path, item in ((path, written[name]) for path, name in by_path.items())
        )
    for name, value in fields.items():
        setattr(version, name, value)
