"""Check the additional models of a deployment with multi-model serving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.services.revision_checks import problem_with_objects
from deployments.registry.domain import compatibility, signatures, triton_config
from deployments.registry.domain.formats import catalogue
from deployments.registry.gateways.object_store import ArtifactError
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from deployments.states import VersionState

NAME: Final = "Multi-model serving"
_CLIENTS: Final = "Multi-model clients"


def check_models(versions: Sequence[ModelVersion], spec: ServingSpec) -> list[Check]:
    """Apply the checks of a model that is served alone to each. Empty without additional models."""
    if not versions:
        return []
    try:
        problems = [
            _problem_with(*pair) for pair in zip(versions, spec.additional_models, strict=True)
        ]
    except ArtifactError as error:
        detail = f"The files could not be checked: object storage did not respond: {error}"
        return [Check(NAME, ok=None, detail=detail)]
    refused = [problem for problem in problems if problem]
    if refused:
        fix = "Remove it or choose another version."
        return [Check(NAME, ok=False, detail=" ".join(refused), fix=fix)]
    labels = ", ".join(version.label for version in versions)
    return [Check(NAME, ok=True, detail=f"Ready in the serving repository: {labels}.")]


def _problem_with(version: ModelVersion, tuning: AdditionalModel) -> str:
    if version.state != VersionState.READY:
        return f"{version.label} is {version.state}. {version.state_reason}".strip()
    if version.source_uri:
        return (
            f"{version.label} is a reference to {version.source_uri}. Multi-model serving "
            "needs uploaded versions."
        )
    if not catalogue.is_for_triton(version.format):
        return f"{version.label} is not a model of Triton. Multi-model serving needs one."
    problem = problem_with_objects(version) or triton_config.problem_with(
        signatures.from_json(version.signature), tuning
    )
    return f"{version.label}: {problem}" if problem else ""


def check_clients(
    old_versions: Sequence[ModelVersion], new_versions: Sequence[ModelVersion]
) -> list[Check]:
    """Refuse versions that break clients of the same model; a removed model is only reported."""
    new_by_model = {version.model_id: version for version in new_versions}
    breaks = [
        f"{version.label} to {new_by_model[version.model_id].label}: {detail}"
        for version in old_versions
        if version.model_id in new_by_model
        for detail in _incompatibilities(version, new_by_model[version.model_id])
    ]
    if breaks:
        fix = "Deploy it under a new name to keep existing clients working."
        return [Check(_CLIENTS, ok=False, detail=f"{'; '.join(breaks)}.", fix=fix)]
    removed = [version.label for version in old_versions if version.model_id not in new_by_model]
    added = [
        version.label
        for version in new_versions
        if version.model_id not in {version.model_id for version in old_versions}
    ]
    if removed:
        detail = f"{', '.join(removed)} will no longer be served at this address."
        fix = "Add it again if clients still call it."
        return [Check(_CLIENTS, ok=False, detail=detail, fix=fix, is_blocking=False)]
    if added:
        detail = (
            f"{', '.join(added)} is served only by the new revision until it takes all traffic."
        )
        return [Check(_CLIENTS, ok=None, detail=detail, is_blocking=False)]
    return []


def _incompatibilities(old: ModelVersion, new: ModelVersion) -> list[str]:
    return list(
        compatibility.incompatibilities(
            signatures.from_json(old.signature), signatures.from_json(new.signature)
        )
    )
