"""Examine the stored files of a version and create its serving repository.

Everything is derived from the objects at their VersionIds, so an examination can restart after a
crash at any point: keys are deterministic, and a correct copy is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.domain import object_keys, signatures, triton_config
from deployments.registry.domain.forests import comparison
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.formats.catalogue import Detected
from deployments.registry.domain.formats.format import Format, Inspection
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.examined_version import SAMPLE, ExaminedVersion
from deployments.registry.domain.load_tests.results import LoadTest
from deployments.registry.domain.not_servable import NeedsDeclaration
from deployments.registry.domain.scanning import releases
from deployments.registry.gateways import object_store
from deployments.registry.gateways.stored_artifact import StoredArtifact
from deployments.registry.services.examination import (
    archive_unpacking,
    format_examination,
    load_test,
    onnx_examination,
    serving_repository,
    stored_files,
)
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import FileRefused, refuse_step
from deployments.registry.services.examination.serving_repository import RepositoryDraft
from deployments.registry.services.scans import step as scan_step


@dataclass(slots=True)
class ExaminationResult:
    """The columns to write, and the reason for a quarantine, or empty."""

    columns: dict[str, Any] = field(default_factory=dict)
    quarantine_reason: str = ""
    # The load test on a cluster is still to come.
    is_waiting: bool = False


def examine(version: ModelVersion, folder: Path, checklist: Checklist) -> ExaminationResult:
    """Examine a version. Raises FileRefused, ReaderDied and gateway errors; the caller retries after the latter."""
    result = ExaminationResult()
    files, artifact = _open(version, checklist)
    if archive_unpacking.unpack_if_archive(version, artifact, checklist):
        files, artifact = _open(version, checklist)
    archive_unpacking.remove_archive(version, artifact)
    detected = _check_format(version, artifact, checklist)
    kind = detected.format
    result.columns["format"] = kind.key
    copies = _copies(detected, artifact, folder)
    result.columns["sha256"] = stored_files.check_digests(
        artifact.store, version, files, checklist, copies=copies
    )
    report = scan_step.scan(version, artifact, copies, detected, checklist)
    result.columns |= scan_step.columns_of(report)
    need = scan_step.decide(version, kind, report, checklist)
    result.quarantine_reason = need
    if need and not kind.is_read_before_release:
        return result
    try:
        inspection = _inspect(version, artifact, copies, detected, result, checklist)
    except NeedsDeclaration as declaration:
        result.quarantine_reason = str(declaration)
        return result
    except FileRefused as refusal:
        if not need:
            raise
        result.quarantine_reason = releases.describe_no_engine(kind, report, str(refusal))
        return result
    if not need:
        result.columns |= _create_repository(version, artifact, detected, inspection, checklist)
        _load(version, kind, artifact, inspection, result, checklist)
    return result


def _inspect(
    version: ModelVersion,
    artifact: StoredArtifact,
    copies: Mapping[str, Path],
    detected: Detected,
    result: ExaminationResult,
    checklist: Checklist,
) -> Inspection:
    """Read the artifact by its format. Raises FileRefused, ReaderDied, and NeedsDeclaration."""
    if detected.format.reading is not None:
        return format_examination.examine(
            version,
            artifact,
            copies.get(detected.main),
            detected,
            detected.format.reading,
            checklist,
        )
    inspection, result.quarantine_reason = onnx_examination.examine(
        version, copies[detected.main], detected, artifact.sizes, checklist
    )
    return inspection


def _load(
    version: ModelVersion,
    kind: Format,
    artifact: StoredArtifact,
    inspection: Inspection,
    result: ExaminationResult,
    checklist: Checklist,
) -> None:
    """Run the load test, here or on the cluster that the team chose."""
    if result.quarantine_reason:
        load_test.skip("it is quarantined", checklist)
    elif load_test.is_on_cluster(version, kind, checklist):
        result.is_waiting = True
        if inspection.sample:
            result.columns["signature"] |= {SAMPLE: inspection.sample.to_json()}
    else:
        loaded = load_test.run(version, kind, result.columns, inspection, artifact.store, checklist)
        result.columns["signature"] |= {results.KEY: loaded.to_json()} if loaded else {}


def after_load_test(
    examined: ExaminedVersion, result: LoadTest, checklist: Checklist
) -> ExaminationResult:
    """Finish the examination of a version that waited for the result of its load test. Raises FileRefused."""
    signature = signatures.from_json(examined.signature)
    sample = comparison.from_json(examined.sample) if examined.sample else None
    loaded = load_test.conclude(result, signature, checklist, sample)
    return ExaminationResult(examined.with_load_test(loaded).columns())


def _open(version: ModelVersion, checklist: Checklist) -> tuple[list[ArtifactFile], StoredArtifact]:
    store = object_store.store()
    files = list(version.files.select_related("version"))
    return files, StoredArtifact(store, stored_files.check_sizes(store, files, checklist))


def _check_format(
    version: ModelVersion, artifact: StoredArtifact, checklist: Checklist
) -> Detected:
    detected = catalogue.detect(artifact)
    if not detected.format.is_accepted:
        raise refuse_step(checklist, "Format", detected.describe_refusal(version.filename))
    unpacked = (
        ", unpacked from the archive" if object_keys.is_unpacked(version.upload_prefix) else ""
    )
    checklist.pass_step("Format", f"{detected.format.name}, detected from its content{unpacked}")
    return detected


def _copies(detected: Detected, artifact: StoredArtifact, folder: Path) -> dict[str, Path]:
    """Map the files to the paths of their local copies, for formats whose libraries read from disk. Empty for
    others.
    """
    if not detected.format.is_read_locally:
        return {}
    return {
        path: folder / detected.format.local_path(path, detected.main) for path in artifact.sizes
    }


def _create_repository(
    version: ModelVersion,
    artifact: StoredArtifact,
    detected: Detected,
    inspection: Inspection,
    checklist: Checklist,
) -> dict[str, Any]:
    signature, estimate = inspection.signature, inspection.estimate
    name = version.model.name
    config_path = object_keys.config_key("", name)
    generated = dict(inspection.generated)
    is_given = config_path in generated or config_path in inspection.layout
    if detected.format.is_for_triton and not is_given:
        generated[config_path] = triton_config.render(model=name, signature=signature)
    digests = dict(version.files.values_list("path", "sha256"))
    draft = RepositoryDraft(
        copied={target: artifact.objects[path] for target, path in inspection.layout.items()},
        sha256={target: digests[path] for target, path in inspection.layout.items()},
        generated={
            target: body.encode() if isinstance(body, str) else body
            for target, body in generated.items()
        },
    )
    prefix, objects = serving_repository.create(artifact.store, version, draft, checklist)
    return {
        "signature": signature.to_json() | {"vram_parts_mib": estimate.to_json()},
        "vram_estimate_mib": estimate.total_mib,
        "repository_prefix": prefix,
        "config_pbtxt": str(generated.get(config_path, "")),
        "laid_out": [item.to_json() for item in objects],
    }
