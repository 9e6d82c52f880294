"""Examine the stored bytes of a version and create its serving repository.

Everything is derived from the object at its VersionId, so an examination can restart after a crash
at any point: keys are deterministic, and a correct copy is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployments.models import ModelVersion
from deployments.registry.domain import formats, triton_config
from deployments.registry.domain.formats import ModelFormat
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactStore, ObjectMissing, StoredObject
from deployments.registry.selectors import versions
from deployments.registry.services import (
    onnx_examination,
    sandboxed_steps,
    serving_repository,
    use_examination,
)
from deployments.registry.services.checklist import Checklist
from deployments.registry.services.sandboxed_steps import refused
from deployments.registry.services.use_examination import UseExamination


@dataclass(slots=True)
class ExaminationResult:
    """Columns to write, and the reason for a quarantine, or empty."""

    columns: dict[str, Any] = field(default_factory=dict)
    quarantine_reason: str = ""


def examine(version: ModelVersion, folder: Path, checklist: Checklist) -> ExaminationResult:
    """Raises FileRefused, ReaderDied and gateway errors; the caller retries after the latter."""
    store = object_store.store()
    result = ExaminationResult()
    stored = _check_size(store, version, checklist)
    kind = _check_format(store, version, stored, checklist)
    result.columns["format"] = str(kind)
    path = folder / _local_name(kind, version.filename)
    version.sha256 = _check_digest(store, version, stored, path, checklist)
    result.columns["sha256"] = version.sha256
    if kind in formats.PICKLE_BEARING:
        result.quarantine_reason = _scan_pickles(version, path, checklist)
        return result
    checklist.passed("Scan", "ONNX files contain no pickled code")
    facts = onnx_examination.read(version, path, checklist)
    result.quarantine_reason = onnx_examination.load(version, path, facts, checklist)
    use = use_examination.examine(
        version, path, facts, checklist, can_run=not result.quarantine_reason
    )
    result.columns |= _create_repository(store, version, stored, use, checklist)
    return result


def _local_name(kind: ModelFormat, filename: str) -> str:
    """Libraries select the reader by extension; ONNX Runtime has another one for .ort."""
    is_onnx = kind is ModelFormat.ONNX
    return "artifact.onnx" if is_onnx else f"artifact{Path(filename).suffix.lower()}"


def _check_size(store: ArtifactStore, version: ModelVersion, checklist: Checklist) -> StoredObject:
    checklist.running("Size", "checking object storage")
    try:
        stored = store.head(version.key, version.s3_version_id)
    except ObjectMissing as error:
        raise refused(
            checklist, "Size", "The file is no longer in the bucket. Upload it again."
        ) from error
    if stored.size_bytes != version.declared_size_bytes:
        raise refused(
            checklist,
            "Size",
            f"Received {stored.size_bytes:,} bytes, expected {version.declared_size_bytes:,}. "
            "The upload is truncated or a different file; upload it again.",
        )
    checklist.passed("Size", f"{stored.size_bytes:,} bytes, as declared")
    return stored


def _check_format(
    store: ArtifactStore, version: ModelVersion, stored: StoredObject, checklist: Checklist
) -> ModelFormat:
    count = min(formats.HEAD_BYTES, stored.size_bytes)
    head = store.read_head(version.key, version.s3_version_id, count)
    kind = formats.detect(head, version.filename)
    if not formats.is_accepted(kind):
        advice = formats.advice(kind)
        raise refused(checklist, "Format", f"{version.filename} is {advice.name}. {advice.fix}")
    checklist.passed("Format", f"{kind}, detected from its content")
    return kind


def _check_digest(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    path: Path,
    checklist: Checklist,
) -> str:
    """Verify the digest of the stored bytes, which is authoritative; part checksums are optional."""
    checklist.running("Digest", "reading the stored file")
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for chunk in _chunks(store, version, checklist):
            digest.update(chunk)
            file.write(chunk)
    sha256 = digest.hexdigest()
    if version.declared_sha256 and sha256 != version.declared_sha256:
        raise refused(
            checklist,
            "Digest",
            f"The stored file has SHA-256 {sha256[:12]}…, expected "
            f"{version.declared_sha256[:12]}…. It changed during upload; upload it again.",
        )
    if path.stat().st_size != stored.size_bytes:
        raise object_store.StoreUnreachable(f"{version.key}: the body ended early")
    version.sha256 = sha256
    twins = ", ".join(str(number) for number in versions.twins_of(version))
    also = f"; identical to version {twins}" if twins else ""
    compared = "as declared" if version.declared_sha256 else "not declared"
    checklist.passed("Digest", f"SHA-256 {sha256[:12]}…, {compared}{also}")
    return sha256


def _chunks(store: ArtifactStore, version: ModelVersion, checklist: Checklist) -> Iterator[bytes]:
    for chunk in store.read(version.key, version.s3_version_id):
        checklist.keep_alive()
        yield chunk


def _scan_pickles(version: ModelVersion, path: Path, checklist: Checklist) -> str:
    """The reason for the quarantine: pickles execute code when loaded, so they are never served."""
    step = "Scan"
    checklist.running(step, "scanning pickles for code")
    report = sandboxed_steps.run(
        "deployments.registry.gateways.pickle_scanner:scan_file",
        path,
        version=version,
        step=step,
        checklist=checklist,
    )
    fix = (
        "Export the model to ONNX, which contains no code: torch.onnx.export(model, example, path)."
    )
    if report["dangerous"]:
        reason = f"Loading this file would call {', '.join(report['dangerous'][:5])}. {fix}"
    elif report["problem"]:
        reason = f"The file could not be scanned ({report['problem']}). {fix}"
    else:
        reason = (
            "The scan found no dangerous code, but this format runs Python code when loaded "
            f"and no engine supports it. {fix}"
        )
    checklist.refused(step, reason)
    return reason


def _create_repository(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    use: UseExamination,
    checklist: Checklist,
) -> dict[str, Any]:
    signature, estimate = use.signature, use.estimate
    config = triton_config.render(model=version.model.name, signature=signature)
    prefix, objects = serving_repository.create(store, version, stored, config, checklist)
    return {
        "signature": signature.to_json() | {"vram_parts_mib": estimate.to_json()},
        "vram_estimate_mib": estimate.total_mib,
        "repository_prefix": prefix,
        "config_pbtxt": config,
        "laid_out": [item.to_json() for item in objects],
    }
