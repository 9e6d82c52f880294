"""The step of an examination that loads the serving repository in a real Triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from django.conf import settings

from deployments.models import ModelVersion
from deployments.registry.domain.forests.comparison import Sample
from deployments.registry.domain.formats.format import Format, Inspection
from deployments.registry.domain.load_tests import requests, results
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest
from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.serving_objects import ServingObject
from deployments.registry.domain.signatures import Signature
from deployments.registry.gateways import load_test as gateway
from deployments.registry.gateways.object_store import ArtifactStore
from deployments.registry.services.examination import cluster_load_test, sandboxed_steps
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import refuse_step

STEP: Final = cluster_load_test.STEP
_MIB: Final = 2**20
# Triton itself, and copies of the files in its memory.
_BASE_MEMORY_MIB: Final = 2048
_MEMORY_PER_FILE_BYTE: Final = 3
_MAX_CAUSE_LENGTH: Final = 600
_MAX_DIFFERENCES: Final = 5
_NO_MODULE: Final = "ModuleNotFoundError"
_DECOUPLED: Final = "decoupled"


def run(
    version: ModelVersion,
    kind: Format,
    columns: Mapping[str, Any],
    inspection: Inspection,
    store: ArtifactStore,
    checklist: Checklist,
) -> LoadTest | None:
    """Load the repository into Triton. `columns` are those of the serving repository. None if the test has no
    result.

    Raises FileRefused if Triton cannot serve the repository, and LeaseLost.
    """
    objects = [ServingObject(**row) for row in columns["laid_out"]]
    reason = _reason_not_to_try(kind, objects)
    if reason:
        checklist.not_tried(STEP, reason)
        return None
    checklist.running(STEP, "loading the serving repository in Triton")
    with (
        sandboxed_steps.count_deaths(version, STEP, checklist),
        _folder(store, columns["repository_prefix"], objects, checklist) as folder,
    ):
        _write(requests.requests_of(inspection.signature), folder / "requests")
        if inspection.sample:
            rows = requests.sample_requests(inspection.signature, inspection.sample)
            _write(rows, folder / "sample")
        size = sum(item.size_bytes for item in objects)
        result = gateway.run(
            folder,
            version.model.name,
            memory_mib=_BASE_MEMORY_MIB + _MEMORY_PER_FILE_BYTE * size // _MIB,
            seconds=settings.SLIPWAY_LOAD_TEST_SECONDS,
            while_running=checklist.keep_alive_unless_stopped,
        )
    return conclude(result, inspection.signature, checklist, inspection.sample)


def is_on_cluster(version: ModelVersion, kind: Format, checklist: Checklist) -> bool:
    """Whether it is left to the cluster that the team chose."""
    cluster = cluster_load_test.place_of(version) if kind.is_for_triton else ""
    if cluster:
        checklist.running(STEP, cluster_load_test.describe(cluster))
    return bool(cluster)


def skip(reason: str, checklist: Checklist) -> None:
    checklist.not_tried(STEP, reason)


def _reason_not_to_try(kind: Format, objects: Sequence[ServingObject]) -> str:
    if not kind.is_for_triton:
        return f"it is served by {' or '.join(kind.engines)}, which do not run here"
    if not gateway.is_available():
        return "no Triton available"
    limit_mib = settings.SLIPWAY_LOAD_TEST_MAX_MIB
    size_mib = -(-sum(item.size_bytes for item in objects) // _MIB)
    if size_mib > limit_mib:
        return f"the files have {size_mib:,} MiB, the limit of load tests here is {limit_mib:,}"
    return ""


def conclude(
    result: LoadTest, signature: Signature, checklist: Checklist, sample: Sample | None = None
) -> LoadTest | None:
    """Write the outcome to the checklist and return the test. None if it has no result. Raises FileRefused and
    LeaseLost as `run`.
    """
    where = f"on cluster {result.cluster}" if result.cluster else "on the portal's CPU"
    cause = printable(result.detail)[:_MAX_CAUSE_LENGTH].rstrip(". ")
    match result.outcome:
        case LoadOutcome.ANSWERED:
            _check_answer(result, signature, sample, checklist)
            return result.without_answers()
        case LoadOutcome.NO_RUNTIME:
            checklist.not_tried(STEP, cause)
            return None
        case LoadOutcome.NO_REQUEST:
            reason = requests.reason_for_none(signature) or cause
            checklist.inconclusive(STEP, f"inconclusive: {reason}; {result.describe_load()}")
            return result
        case LoadOutcome.LATE | LoadOutcome.TOO_LARGE:
            checklist.inconclusive(STEP, f"stopped, no verdict: {cause} {where}")
            return None
    if warning := _describe_warning(result, signature, cause):
        checklist.warn_step(STEP, warning)
        return result
    problem = "Triton does not load the model"
    if result.outcome != LoadOutcome.NOT_LOADED:
        problem = "Triton loads the model, but it answers no request"
    raise refuse_step(checklist, STEP, f"{problem}: {cause}.")


def _describe_warning(result: LoadTest, signature: Signature, cause: str) -> str:
    """Say why a model that was not loaded, or gave no answer, may serve all the same. Empty if it cannot."""
    if result.outcome == LoadOutcome.NOT_LOADED and _NO_MODULE in cause:
        fix = "Bring it in an environment (EXECUTION_ENV_PATH), unless the image has it."
        return f"did not load here: {cause}. {fix}"
    if result.outcome != LoadOutcome.NOT_ANSWERED:
        return ""
    if _DECOUPLED in cause:
        return f"{result.describe_load()}; it streams its answers, which is not tried"
    if not requests.is_any_request_valid(signature):
        return f"{result.describe_load()}; no generated request fits the model: {cause}"
    return ""


def _check_answer(
    result: LoadTest, signature: Signature, sample: Sample | None, checklist: Checklist
) -> None:
    """Check the answer. Another score than that of the user's own library is refused. A runtime that answers
    another shape than the declared one serves the model, so that is a warning.
    """
    has_scores = sample is not None and bool(result.sample_answers)
    if sample is not None and has_scores:
        difference = sample.describe_difference(result.sample_answers)
        if difference:
            raise refuse_step(
                checklist,
                STEP,
                f"Triton loads the model, but its answers differ from {sample.library}: {difference}. Convert the model "
                "to ONNX, or train it without the setting that differs.",
            )
    scored = (
        f"; {sample.count} generated rows get the scores of {sample.library}"
        if sample is not None and has_scores
        else ""
    )
    differences = list(results.compare_outputs(result, signature))
    if not differences:
        checklist.pass_step(STEP, f"{result.describe()}{scored}")
        return
    described = "; ".join(difference.describe() for difference in differences[:_MAX_DIFFERENCES])
    more = len(differences) - _MAX_DIFFERENCES
    rest = f" and {more:,} more" if more > 0 else ""
    checklist.warn_step(
        STEP,
        f"{result.describe()}{scored}. Its answers differ from its signature: {described}{rest}. Clients get "
        "these answers.",
    )


@contextmanager
def _folder(
    store: ArtifactStore, prefix: str, objects: Sequence[ServingObject], checklist: Checklist
) -> Iterator[Path]:
    """Yield a copy of the serving repository, without the folder of the examination: what runs there has no
    business with the uploaded files.
    """
    with TemporaryDirectory(prefix="slipway-load-test-") as name:
        folder = Path(name)
        for item in objects:
            path = folder / "models" / item.key.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for chunk in store.read(item.key, item.version_id):
                    checklist.keep_alive()
                    file.write(chunk)
        yield folder


def _write(bodies: Iterator[tuple[int, bytes]], folder: Path) -> None:
    folder.mkdir()
    for number, (header_bytes, body) in enumerate(bodies):
        (folder / f"{number}-{header_bytes}").write_bytes(body)
