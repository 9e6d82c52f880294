"""Verify the stored files of a version: their sizes and digests. Resumable file by file."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactStore, ObjectMissing, StoredObject
from deployments.registry.selectors import versions
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import refuse_step


def check_sizes(
    store: ArtifactStore, files: Sequence[ArtifactFile], checklist: Checklist
) -> dict[str, StoredObject]:
    """Return the objects by path. Raises FileRefused."""
    step = "Size"
    checklist.running(step, "checking object storage")
    objects = {}
    for file in files:
        checklist.keep_alive()
        objects[file.path] = _check_size(store, file, checklist)
    total = sum(stored.size_bytes for stored in objects.values())
    count = f"{len(objects):,} files, " if len(objects) > 1 else ""
    checklist.pass_step(step, f"{count}{total:,} bytes, as declared")
    return objects


def _check_size(store: ArtifactStore, file: ArtifactFile, checklist: Checklist) -> StoredObject:
    try:
        stored = store.head(file.key, file.s3_version_id)
    except ObjectMissing as error:
        reason = f"{file.path} is no longer in the bucket. Upload it again."
        raise refuse_step(checklist, "Size", reason) from error
    if stored.size_bytes != file.size_bytes:
        raise refuse_step(
            checklist,
            "Size",
            f"Received {stored.size_bytes:,} bytes of {file.path}, expected {file.size_bytes:,}. "
            "The upload is truncated or a different file; upload it again.",
        )
    return stored


def check_digests(
    store: ArtifactStore,
    version: ModelVersion,
    files: Sequence[ArtifactFile],
    checklist: Checklist,
    *,
    copies: Mapping[str, Path],
) -> str:
    """Return the identity of the files, from the digests of the stored bytes, which are authoritative.

    Writes a copy of each file with a path in `copies`. Raises FileRefused.
    """
    step = "Digest"
    for number, file in enumerate(files, start=1):
        copy = copies.get(file.path)
        if file.sha256 and copy is None:
            continue
        which = f" {number:,} of {len(files):,}" if len(files) > 1 else ""
        checklist.running(step, f"reading the stored file{which}")
        sha256 = _digest(store, file, checklist, copy)
        _require_declared(file, sha256, checklist)
        ArtifactFile.objects.filter(pk=file.pk).update(sha256=sha256)
        file.sha256 = sha256
    version.sha256 = artifact_files.identity({file.path: file.sha256 for file in files})
    checklist.pass_step(step, _describe(version, files))
    return version.sha256


def digest_of(
    store: ArtifactStore,
    key: str,
    version_id: str,
    keep_alive: Callable[[], None],
    target: IO[bytes] | None = None,
) -> tuple[str, int]:
    """Return the SHA-256 and length of an object, read as a stream, and written to `target`."""
    digest, length = hashlib.sha256(), 0
    for chunk in store.read(key, version_id):
        keep_alive()
        digest.update(chunk)
        length += len(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest(), length


def _digest(
    store: ArtifactStore, file: ArtifactFile, checklist: Checklist, copy: Path | None
) -> str:
    with _opened(copy) as target:
        sha256, length = digest_of(
            store, file.key, file.s3_version_id, checklist.keep_alive, target
        )
    if length != file.size_bytes:
        raise object_store.StoreUnreachable(f"{file.key}: the body ended early")
    return sha256


def _opened(copy: Path | None) -> contextlib.AbstractContextManager[IO[bytes] | None]:
    if copy is None:
        return contextlib.nullcontext()
    copy.parent.mkdir(parents=True, exist_ok=True)
    return copy.open("wb")


def _require_declared(file: ArtifactFile, sha256: str, checklist: Checklist) -> None:
    if file.declared_sha256 and sha256 != file.declared_sha256:
        raise refuse_step(
            checklist,
            "Digest",
            f"{file.path} is stored with SHA-256 {sha256[:12]}…, expected "
            f"{file.declared_sha256[:12]}…. It changed during upload; upload it again.",
        )


def _describe(version: ModelVersion, files: Sequence[ArtifactFile]) -> str:
    twins = ", ".join(str(number) for number in versions.twins_of(version))
    also = f"; identical to version {twins}" if twins else ""
    are_declared = all(file.declared_sha256 for file in files)
    compared = "as declared" if are_declared else "not declared"
    of_all = f" of {len(files):,} files" if len(files) > 1 else ""
    return f"SHA-256{of_all} {version.sha256[:12]}…, {compared}{also}"
