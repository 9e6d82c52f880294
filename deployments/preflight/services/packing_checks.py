"""Checks of the further models that a deployment's Triton serves beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.services.revision_checks import problem_with_objects
from deployments.registry.domain import compatibility, signatures, triton_config
from deployments.registry.gateways.object_store import ArtifactError
from deployments.spec.domain.serving_spec import Packed, ServingSpec
from deployments.states import VersionState

NAME: Final = "Multi-model serving"
_CLIENTS: Final = "Multi-model clients"


def of_packed(packed: Sequence[ModelVersion], spec: ServingSpec) -> list[Check]:
    """Each must be as fit as if it were served alone. Only where there are such."""
    if not packed:
        return []
    try:
        problems = [_problem_with(*pair) for pair in zip(packed, spec.packed, strict=True)]
    except ArtifactError as error:
        words = f"The files could not be checked: object storage did not respond: {error}"
        return [Check(NAME, ok=None, detail=words)]
    found = [problem for problem in problems if problem]
    if found:
        fix = "Remove it or choose another version."
        return [Check(NAME, ok=False, detail=" ".join(found), fix=fix)]
    labels = ", ".join(version.label for version in packed)
    return [Check(NAME, ok=True, detail=f"Ready in the serving repository: {labels}.")]


def _problem_with(version: ModelVersion, tuning: Packed) -> str:
    if version.state != VersionState.READY:
        return f"{version.label} is {version.state}. {version.state_reason}".strip()
    if version.source_uri:
        return (
            f"{version.label} is a reference to {version.source_uri}. Multi-model serving "
            "needs uploaded versions."
        )
    problem = problem_with_objects(version) or triton_config.problem_with(
        signatures.from_json(version.signature), tuning
    )
    return f"{version.label}: {problem}" if problem else ""


def of_clients(now: Sequence[ModelVersion], then: Sequence[ModelVersion]) -> list[Check]:
    """Callers of what is packed now must be able to go on; a model left out is told, not refused."""
    later = {version.model_id: version for version in then}
    breaks = [
        f"{one.label} to {later[one.model_id].label}: {words}"
        for one in now
        if one.model_id in later
        for words in _breaks(one, later[one.model_id])
    ]
    if breaks:
        fix = "Deploy it under a new name to keep existing clients working."
        return [Check(_CLIENTS, ok=False, detail=f"{'; '.join(breaks)}.", fix=fix)]
    gone = [one.label for one in now if one.model_id not in later]
    new = [one.label for one in then if one.model_id not in {version.model_id for version in now}]
    if gone:
        words = f"{', '.join(gone)} will no longer be served at this address."
        fix = "Add it again if clients still call it."
        return [Check(_CLIENTS, ok=False, detail=words, fix=fix, is_blocking=False)]
    if new:
        words = f"{', '.join(new)} is served only by the new revision until it takes all traffic."
        return [Check(_CLIENTS, ok=None, detail=words, is_blocking=False)]
    return []


def _breaks(now: ModelVersion, then: ModelVersion) -> list[str]:
    return list(
        compatibility.breaks(
            signatures.from_json(now.signature), signatures.from_json(then.signature)
        )
    )
