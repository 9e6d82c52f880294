"""Memory and speed of a version: from its file, and from measurements of it or earlier versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from deployments.models import ModelVersion, Revision
from deployments.sizing.domain import kept_peaks
from deployments.sizing.domain.memory import FileModel, MeasuredMemory, Need, combine, need_of_file
from deployments.sizing.domain.onnx import VramEstimate
from deployments.sizing.selectors import workload_times
from fleet.telemetry.selectors import measured
from fleet.telemetry.selectors.measured import Stood


def describe_file(version: ModelVersion) -> FileModel | None:
    """Describe the memory of a version by its file. None if the file was not read."""
    estimate = VramEstimate.from_signature(version.signature)
    if estimate is None:
        return None
    return FileModel(
        weights_mib=estimate.weights_mib,
        activations_mib=estimate.activations_mib,
        spread_mib=estimate.spread_mib,
        sizes=str(version.signature.get("largest_inputs", "")),
        runtime_mib=estimate.runtime_mib,
    )


def min_vram_mib(version: ModelVersion) -> int | None:
    """Return the lower bound of the estimate. None without an estimate."""
    estimate = VramEstimate.from_signature(version.signature)
    if estimate is None or version.vram_estimate_mib is None:
        return version.vram_estimate_mib
    return version.vram_estimate_mib - estimate.spread_mib


def find_measurement(version: ModelVersion) -> MeasuredMemory | None:
    """Return the measurement of this version, otherwise of the latest earlier one."""
    revisions = _revisions(version)
    peaks = peaks_of(revisions)
    measured_revisions = [
        (revision, peaks[revision.pk]) for revision in revisions if revision.pk in peaks
    ]
    if not measured_revisions:
        return None
    revision, mib = max(measured_revisions, key=lambda pair: (pair[0].version.number, pair[1]))
    estimate = VramEstimate.from_signature(revision.version.signature)
    return MeasuredMemory(
        label=revision.version.label,
        mib=mib,
        instances=int(revision.spec.get("instances_per_gpu", 1)),
        weights_mib=None if estimate is None else estimate.weights_mib,
    )


def peaks_of(
    revisions: Collection[Revision], times: Mapping[int, Stood] | None = None
) -> dict[int, int]:
    """Return GPU memory in MiB by primary key of the revision, whose deployment must be selected with it. Those
    that were not measured are left out. `times`: of the revisions, if they are known.
    """
    kept = {
        revision.pk: mib
        for revision in revisions
        if (mib := kept_peaks.peak_of(revision.deployment.observed, revision.number))
    }
    others = [row for row in revisions if row.pk not in kept]
    times = workload_times.times_of(others) if times is None else times
    peaks = measured.memory_peaks({times[row.pk].key for row in others})
    current = {
        row.pk: peak.mib
        for row in others
        if (peak := peaks.get(times[row.pk].key)) and times[row.pk].holds(peak.since)
    }
    return kept | current


def estimate_need(
    version: ModelVersion,
    *,
    instances: int,
    additional: Sequence[tuple[ModelVersion, int]] = (),
) -> Need | None:
    """Return the need of all models in one process. None if the file of any was not read.

    `additional` are the other versions of multi-model serving, with their instances.
    """
    needs = []
    for model_version, count in ((version, instances), *additional):
        facts = describe_file(model_version)
        if facts is None:
            return None
        needs.append(need_of_file(facts, instances=count, measured=find_measurement(model_version)))
    return combine(
        needs[0],
        [(added.label, need) for (added, _), need in zip(additional, needs[1:], strict=True)],
    )


def gpu_us_per_inference(version: ModelVersion) -> int | None:
    """Return GPU time of an inference, over all versions up to this one."""
    return measured.busy_us_per_inference(_times(version))


def list_start_seconds(version: ModelVersion) -> list[int]:
    """Return the seconds from pod creation to readiness, for recent starts of this model."""
    return measured.start_seconds(_times(version))


def _times(version: ModelVersion) -> list[Stood]:
    return list(workload_times.times_of(_revisions(version)).values())


def _revisions(version: ModelVersion) -> list[Revision]:
    rows = Revision.objects.filter(
        version__model_id=version.model_id, version__number__lte=version.number
    )
    return [
        revision
        for revision in rows.select_related("version__model", "deployment")
        # GPU memory of multi-model serving can't be attributed to a single model.
        if not revision.spec.get("additional_models")
    ]
