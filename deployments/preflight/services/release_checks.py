"""Check what a request needs of its engine against the release of the image that it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deployments.engines.domain import lacks, table
from deployments.manifests.domain.metadata import Manifest
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.registry.domain.hugging_face import facts
from deployments.spec.domain.engines import KSERVE_VLLM
from deployments.spec.domain.serving_spec import ServingSpec

_TITLE: Final = "Engine release"


def check(version: ModelVersion, spec: ServingSpec, manifests: Sequence[Manifest]) -> list[Check]:
    """Check the rendered arguments of vLLM, and the model that it loads. Empty if the release has all of it."""
    if spec.engine != KSERVE_VLLM:
        return []
    return [found for server in _servers(manifests) for found in _check(version, server)]


def _servers(manifests: Sequence[Manifest]) -> list[dict[str, Any]]:
    predictors = (
        manifest["spec"]["predictor"]
        for manifest in manifests
        if manifest["kind"] == "InferenceService"
    )
    # Over several nodes the image is that of KServe's own runtime.
    return [predictor["model"] for predictor in predictors if predictor["model"].get("image")]


def _check(version: ModelVersion, server: dict[str, Any]) -> list[Check]:
    image = server["image"]
    release = table.find_vllm_release(image)
    if release is None:
        known = ", ".join(row.name for row in table.list_vllm_releases())
        detail = (
            f"Which release of vLLM {image} runs is not known. Settings are checked for {known}."
        )
        fix = "Name the image by the tag of a release."
        return [Check(_TITLE, ok=None, detail=detail, fix=fix, is_blocking=False)]
    model = version.signature.get(facts.KEY) or {}
    missing = lacks.list_lacks(
        release,
        server.get("args", []),
        architecture=str(model.get("architecture", "")),
        quantization=str(model.get("quantization", "")),
    )
    return [
        Check(
            _TITLE, ok=False, detail=f"vLLM {release.name} does not have {lack.what}.", fix=lack.fix
        )
        for lack in missing
    ]
