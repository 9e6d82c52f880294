"""Examine the stored bytes of one version and lay out what serving reads.

Everything is derived from the object at its VersionId, so it may run again from the start after
a crash at any point: keys are deterministic, and a copy that is already right is left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployments.domain import formats, layout, onnx_files, sizing, triton_config
from deployments.domain.formats import ModelFormat
from deployments.domain.onnx_files import NotServable, OnnxFacts
from deployments.gateways import artifacts, scanner
from deployments.gateways.artifacts import ArtifactStore, ObjectMissing, StoredObject
from deployments.models import ModelVersion
from deployments.selectors import registry
from deployments.services.checklist import Checklist

MIB = 2**20


class Refused(Exception):
    """The bytes cannot become a version; the message says why and how to mend it."""


@dataclass(slots=True)
class Findings:
    """Columns to write, and why the version must be quarantined (empty: it need not be)."""

    columns: dict[str, Any] = field(default_factory=dict)
    quarantine_reason: str = ""


def examine(version: ModelVersion, folder: Path, checklist: Checklist) -> Findings:
    """Raises Refused; gateway errors pass through, so that the caller can try later."""
    store = artifacts.store()
    findings = Findings()
    stored = _check_size(store, version, checklist)
    kind = _check_format(store, version, stored, checklist)
    findings.columns["format"] = str(kind)
    path = folder / f"artifact{Path(version.filename).suffix.lower()}"
    version.sha256 = _check_digest(store, version, stored, path, checklist)
    findings.columns["sha256"] = version.sha256
    if kind in formats.PICKLE_BEARING:
        findings.quarantine_reason = _scan_pickles(path, checklist)
        return findings
    facts = _read_onnx(path, checklist)
    findings.quarantine_reason = _custom_operators(facts)
    _tell_scan(findings.quarantine_reason, checklist)
    findings.columns |= _size_and_lay_out(store, version, stored, facts, checklist)
    return findings


def _check_size(store: ArtifactStore, version: ModelVersion, checklist: Checklist) -> StoredObject:
    checklist.running("Size", "asking the object store")
    try:
        stored = store.head(version.key, version.s3_version_id)
    except ObjectMissing as error:
        raise _refused(
            checklist, "Size", "The stored object is gone from the bucket. Upload it again."
        ) from error
    if stored.size_bytes != version.declared_size_bytes:
        raise _refused(
            checklist,
            "Size",
            f"{stored.size_bytes:,} bytes arrived, {version.declared_size_bytes:,} were declared. "
            "The upload is truncated or another file; upload it again.",
        )
    checklist.passed("Size", f"{stored.size_bytes:,} bytes, as declared")
    return stored


def _check_format(
    store: ArtifactStore, version: ModelVersion, stored: StoredObject, checklist: Checklist
) -> ModelFormat:
    count = min(formats.HEAD_BYTES, stored.size_bytes)
    head = store.read_head(version.key, version.s3_version_id, count)
    kind = formats.detect(head, version.filename)
    if kind is not ModelFormat.ONNX and kind not in formats.PICKLE_BEARING:
        advice = formats.advice(kind)
        raise _refused(checklist, "Format", f"{version.filename} is {advice.name}. {advice.fix}")
    checklist.passed("Format", f"{kind}, by its content")
    return kind


def _check_digest(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    path: Path,
    checklist: Checklist,
) -> str:
    """The digest over what is stored decides; checksums of parts are only a courtesy."""
    checklist.running("Digest", "reading the stored bytes")
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for chunk in _chunks(store, version, checklist):
            digest.update(chunk)
            file.write(chunk)
    sha256 = digest.hexdigest()
    if version.declared_sha256 and sha256 != version.declared_sha256:
        raise _refused(
            checklist,
            "Digest",
            f"The stored bytes have SHA-256 {sha256[:12]}…, declared was "
            f"{version.declared_sha256[:12]}…. They changed on the way; upload the file again.",
        )
    if path.stat().st_size != stored.size_bytes:
        raise artifacts.StoreUnreachable(f"{version.key}: the body ended early")
    version.sha256 = sha256
    twins = ", ".join(str(number) for number in registry.twins_of(version))
    also = f"; these bytes are already version {twins}" if twins else ""
    compared = "as declared" if version.declared_sha256 else "none was declared"
    checklist.passed("Digest", f"SHA-256 {sha256[:12]}…, {compared}{also}")
    return sha256


def _chunks(store: ArtifactStore, version: ModelVersion, checklist: Checklist) -> Iterator[bytes]:
    for chunk in store.read(version.key, version.s3_version_id):
        checklist.keep_alive()
        yield chunk


def _scan_pickles(path: Path, checklist: Checklist) -> str:
    """Why it is quarantined: a pickle runs code when it is loaded, so none is served unseen."""
    checklist.running("Scan", "looking for code in pickles")
    report = scanner.scan(path)
    fix = "Export the model to ONNX, which holds no code: torch.onnx.export(model, example, path)."
    if report.dangerous:
        reason = f"Loading this file would call {', '.join(report.dangerous[:5])}. {fix}"
    elif not report.is_readable:
        reason = f"The file could not be scanned ({report.problem}). {fix}"
    else:
        reason = (
            "The scan found nothing dangerous, but this format runs Python code when it is loaded "
            f"and no engine here serves it. {fix}"
        )
    checklist.refused("Scan", reason)
    return reason


def _read_onnx(path: Path, checklist: Checklist) -> OnnxFacts:
    checklist.running("Inputs and outputs", "reading the graph without running it")
    try:
        facts = onnx_files.read(path)
    except NotServable as error:
        raise _refused(checklist, "Inputs and outputs", str(error)) from error
    signature = facts.signature
    batches = (
        f"batches up to {signature.max_batch_size}"
        if signature.is_batched
        else "no batch dimension found"
    )
    checklist.passed(
        "Inputs and outputs",
        f"{len(signature.inputs)} in, {len(signature.outputs)} out, {batches}, "
        f"{facts.parameter_count:,} parameters",
    )
    return facts


def _custom_operators(facts: OnnxFacts) -> str:
    if not facts.custom_domains:
        return ""
    names = ", ".join(facts.custom_domains)
    return (
        f"The graph uses operators of {names}, which ONNX Runtime does not have. They need a "
        "library of native code beside the model. Export with standard operators only."
    )


def _tell_scan(quarantine_reason: str, checklist: Checklist) -> None:
    if quarantine_reason:
        checklist.warned("Scan", quarantine_reason)
    else:
        checklist.passed("Scan", "ONNX holds no code; standard operators only")


def _size_and_lay_out(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    facts: OnnxFacts,
    checklist: Checklist,
) -> dict[str, Any]:
    signature = facts.signature
    estimate = _estimate(facts)
    checklist.passed(
        "GPU memory",
        f"about {estimate.total_mib} MiB: weights {estimate.weights_mib}, "
        f"activations {estimate.activations_mib}, runtime {estimate.runtime_mib}",
    )
    config = triton_config.render(model=version.model.name, signature=signature)
    prefix = layout.repository_prefix(
        team=version.team.slug,
        model=version.model.name,
        number=version.number,
        sha256=version.sha256,
    )
    _lay_out(store, version, stored, prefix, config, checklist)
    parts = {
        "weights": estimate.weights_mib,
        "activations": estimate.activations_mib,
        "runtime": estimate.runtime_mib,
    }
    return {
        "signature": signature.to_json() | {"vram_parts_mib": parts},
        "vram_estimate_mib": estimate.total_mib,
        "repository_prefix": prefix,
        "config_pbtxt": config,
    }


def _estimate(facts: OnnxFacts) -> sizing.VramEstimate:
    signature = facts.signature
    tensors = [*signature.inputs, *signature.outputs]
    return sizing.estimate_vram(
        weights_bytes=facts.weights_bytes,
        largest_tensor_bytes=facts.largest_tensor_bytes,
        io_bytes=sum(t.bytes_per_item(is_batched=signature.is_batched) for t in tensors),
        max_batch_size=signature.max_batch_size,
    )


def _lay_out(
    store: ArtifactStore,
    version: ModelVersion,
    stored: StoredObject,
    prefix: str,
    config: str,
    checklist: Checklist,
) -> None:
    """Serving reads the newest object of each key, so exactly these two keys may be there."""
    step = "Serving repository"
    checklist.running(step, "copying exactly these bytes")
    name = version.model.name
    model_key, config_key = layout.model_file_key(prefix, name), layout.config_key(prefix, name)
    body = config.encode()
    wanted = {model_key: version.sha256, config_key: hashlib.sha256(body).hexdigest()}
    if not _is_laid_out(store, prefix, wanted, checklist):
        store.delete_all_versions(prefix)
        store.copy(stored, model_key)
        checklist.keep_alive()
        store.put(config_key, body, content_type="text/plain; charset=utf-8")
        if not _is_laid_out(store, prefix, wanted, checklist):
            raise artifacts.StoreUnreachable(f"{prefix}: the copy differs from the upload")
    checklist.passed(step, "laid out from exactly these bytes, read back and compared")


def _is_laid_out(
    store: ArtifactStore, prefix: str, wanted: dict[str, str], checklist: Checklist
) -> bool:
    if set(store.list_keys(prefix)) != set(wanted):
        return False
    return all(_digest_of(store, key, checklist) == sha256 for key, sha256 in wanted.items())


def _digest_of(store: ArtifactStore, key: str, checklist: Checklist) -> str:
    digest = hashlib.sha256()
    for chunk in store.read(key, store.head(key).version_id):
        checklist.keep_alive()
        digest.update(chunk)
    return digest.hexdigest()


def _refused(checklist: Checklist, step: str, reason: str) -> Refused:
    checklist.refused(step, reason)
    return Refused(reason)
