"""Examine an artifact by the reader of its format, in the sandbox."""

from __future__ import annotations

from pathlib import Path

from deployments.models import Import, ModelVersion
from deployments.registry.domain import declarations
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.catalogue import Detected
from deployments.registry.domain.formats.format import ArtifactReading, Context, Inspection
from deployments.registry.domain.not_servable import NeedsDeclaration, NotServable
from deployments.registry.gateways.sandbox_artifact import Access
from deployments.registry.services.examination import sandboxed_steps
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import refuse_step

_STEP = "Inputs and outputs"
# The fact of an import from MLflow.
MODEL_CLASS = "model_class"


def examine(
    version: ModelVersion,
    artifact: Artifact,
    path: Path | None,
    detected: Detected,
    reading: ArtifactReading,
    checklist: Checklist,
) -> Inspection:
    """Read the artifact in the sandbox. `path` is the copy of the main file, for formats that need it.

    Raises FileRefused, ReaderDied, LeaseLost, and NeedsDeclaration, which quarantines the version.
    """
    checklist.running(_STEP, "reading the model without running it")
    argument = {
        "main": detected.main,
        "format": detected.format.key,
        "model": version.model.name,
        "logged_as": _find_logged_class(version),
    }
    facts = sandboxed_steps.run(
        reading.task,
        path,
        version=version,
        step=_STEP,
        checklist=checklist,
        argument=argument,
        access=Access(artifact),
    )
    context = _context_of(version, artifact, detected)
    try:
        inspection = reading.conclude(facts, context)
    except NeedsDeclaration as need:
        checklist.refuse_step(_STEP, str(need))
        raise
    except NotServable as refusal:
        raise refuse_step(checklist, _STEP, str(refusal)) from refusal
    for step, detail in inspection.details.items():
        report = checklist.warn_step if step in inspection.warnings else checklist.pass_step
        report(step, detail)
    return inspection


def _context_of(version: ModelVersion, artifact: Artifact, detected: Detected) -> Context:
    declared = declarations.from_json(version.declared)
    return Context(
        model=version.model.name,
        main=detected.main,
        paths=tuple(artifact.sizes),
        max_batch_size=declared.max_batch_size,
        supports_batching=declared.supports_batching,
        inputs=declared.inputs,
        outputs=declared.outputs,
        compute_capability=declared.compute_capability,
    )


def _find_logged_class(version: ModelVersion) -> str:
    """Return the class that MLflow says it logged. Empty for other versions."""
    facts = Import.objects.filter(version=version).values_list("facts", flat=True).first() or {}
    return str(facts.get(MODEL_CLASS, ""))
