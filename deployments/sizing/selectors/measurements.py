"""What is known of a version: what its file told, and what was measured of it or of those before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployments.models import ModelVersion, Revision
from deployments.sizing.domain import onnx
from deployments.sizing.domain.memory import FileModel, Measured, Need, need_of_file, together
from fleet.telemetry.selectors import measured


def facts_of(version: ModelVersion) -> FileModel | None:
    """Versions of an older portal kept the sum alone."""
    parts = version.signature.get("vram_parts_mib")
    if parts:
        return FileModel(
            weights_mib=parts["weights"],
            activations_mib=parts["activations"],
            spread_mib=parts.get("activations_spread", 0),
            sizes=str(version.signature.get("largest_inputs", "")),
            runtime_mib=parts["runtime"],
        )
    total = version.vram_estimate_mib
    if not total:
        return None
    runtime = min(onnx.RUNTIME_MIB, total)
    return FileModel(weights_mib=total - runtime, activations_mib=0, runtime_mib=runtime)


def least_mib_of(version: ModelVersion) -> int | None:
    """Where the range of the estimate begins; None where nothing was estimated."""
    parts = version.signature.get("vram_parts_mib")
    if not parts or version.vram_estimate_mib is None:
        return version.vram_estimate_mib
    return version.vram_estimate_mib - int(parts.get("activations_spread", 0))


def of_version(version: ModelVersion) -> Measured | None:
    """Its own measurement where there is one, else that of the latest version before it."""
    revisions = {revision.workload_name: revision for revision in _revisions(version)}
    peaks = measured.memory_peaks(namespace=version.team.slug, names=list(revisions))
    found = [(revisions[peak.workload_name], peak.mib) for peak in peaks]
    if not found:
        return None
    latest = max(revision.version.number for revision, _ in found)
    revision, mib = max(
        ((revision, mib) for revision, mib in found if revision.version.number == latest),
        key=lambda pair: pair[1],
    )
    return Measured(
        label=revision.version.label,
        mib=mib,
        instances=int(revision.spec.get("instances_per_gpu", 1)),
        weights_mib=_weights_of(revision.version.signature),
    )


def need_of(
    version: ModelVersion,
    *,
    instances: int,
    packed: Sequence[tuple[ModelVersion, int]] = (),
) -> Need | None:
    """Of all models in one process together; None when the file of one of them was not read.

    `packed`: the further versions, each with its instances.
    """
    needs = []
    for one, count in ((version, instances), *packed):
        facts = facts_of(one)
        if facts is None:
            return None
        needs.append(need_of_file(facts, instances=count, measured=of_version(one)))
    return together(
        needs[0], [(one.label, need) for (one, _), need in zip(packed, needs[1:], strict=True)]
    )


def busy_us_of(version: ModelVersion) -> int | None:
    """GPU time of one inference, over all versions up to this one."""
    names = [revision.workload_name for revision in _revisions(version)]
    return measured.busy_us_per_inference(namespace=version.team.slug, names=names)


def start_seconds_of(version: ModelVersion) -> list[int]:
    """From the pod's creation until it first answered, for every start of this model seen lately."""
    names = [revision.workload_name for revision in _revisions(version)]
    return measured.start_seconds(namespace=version.team.slug, names=names)


def _revisions(version: ModelVersion) -> list[Revision]:
    rows = Revision.objects.filter(
        version__model_id=version.model_id, version__number__lte=version.number
    )
    # What a GPU held for several models together says nothing of one of them.
    found = rows.select_related("version__model", "deployment")
    return [revision for revision in found if not revision.spec.get("packed")]


def _weights_of(signature: dict[str, Any]) -> int | None:
    parts = signature.get("vram_parts_mib")
    return int(parts["weights"]) if parts else None
