"""Check the name, version, engine, settings and memory of a revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.selectors import addresses
from deployments.preflight.services import language_checks
from deployments.registry.domain import (
    compatibility,
    external_weights,
    loading,
    serving_objects,
    signatures,
    triton_config,
)
from deployments.registry.domain.external_weights import ExternalWeights
from deployments.registry.domain.scanning import releases
from deployments.registry.gateways.object_store import ArtifactError
from deployments.sizing.domain import declared_size, language_models
from deployments.sizing.domain.memory import Need
from deployments.sizing.selectors import measurements
from deployments.spec.domain import cluster_support
from deployments.spec.domain.engines import ENGINES, LLM_ENGINES, LLM_SERVICE, ONNX_ENGINES
from deployments.spec.domain.placement.settings.instance_types import OTHER_MEMORY
from deployments.spec.domain.serving_spec import Llm, ServingSpec
from deployments.states import VersionState
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.selectors.clusters import ClusterInfo

TRITON_SETTINGS: Final = "Triton settings"
_IN_PROGRESS: Final = (VersionState.UPLOADING, VersionState.VERIFYING)
_UPLOAD_AGAIN = "Upload the file again as a new version, and request that one."


def check_name(
    cluster: ClusterInfo, context: ManifestContext, *, without_id: int | None = None
) -> Check:
    """Check that the address is free, but for the deployment `without_id`, which gives it up."""
    if context.deployment in addresses.pipelines_at(
        cluster_id=cluster.id, namespace=context.namespace
    ):
        detail = f"A pipeline already uses the address {context.namespace}/{context.deployment}."
        return Check("Name", ok=False, detail=detail, fix="Choose another name.")
    if context.deployment in addresses.deployments_at(
        cluster_id=cluster.id, namespace=context.namespace, without_id=without_id
    ):
        detail = f"{context.namespace}/{context.deployment} already exists on {cluster.name}."
        fix = "Choose another name or request a canary on that deployment."
        return Check("Name", ok=False, detail=detail, fix=fix)
    return Check("Name", ok=True, detail=f"{context.deployment} is available.")


def check_version(version: ModelVersion) -> Check:
    if version.state == VersionState.READY:
        release = releases.from_json(version.release)
        ending = "" if release is None else f" {release.describe()}."
        return Check("Version", ok=True, detail=f"{version.label} is ready.{ending}")
    fix = (
        "Wait until it is verified." if version.state in _IN_PROGRESS else "Choose another version."
    )
    detail = f"{version.label} is {version.state}. {version.state_reason}".strip()
    return Check("Version", ok=False, detail=detail, fix=fix)


def check_artifact(version: ModelVersion, spec: ServingSpec, *, is_ready: bool) -> list[Check]:
    """Check that the serving repository holds exactly the verified objects, once the version is ready."""
    source_check = _check_source(version, spec)
    if source_check is not None:
        return [source_check]
    if not is_ready:
        return []
    refusal = _refuse_upload(version, spec)
    if refusal is not None:
        return [refusal]
    try:
        problem = problem_with_objects(version)
    except ArtifactError as error:
        detail = f"The file could not be checked: object storage did not respond: {error}"
        return [Check("Artifact", ok=None, detail=detail)]
    if problem:
        return [Check("Artifact", ok=False, detail=problem, fix=_UPLOAD_AGAIN)]
    detail = f"{version.size_bytes:,} bytes and the configuration are in the serving repository."
    if spec.llm is not None:
        detail = f"{len(version.laid_out):,} verified files are in the serving repository."
    return [Check("Artifact", ok=True, detail=detail)]


def _refuse_upload(version: ModelVersion, spec: ServingSpec) -> Check | None:
    engines = loading.engines_for("", version.format, version.signature)
    if spec.engine not in engines:
        detail = f"{spec.engine} cannot load {version.filename}."
        fix = f"Choose {' or '.join(engines)}."
        if spec.engine in LLM_ENGINES and ONNX_ENGINES[0] in engines:
            fix = (
                "Choose a version by reference, enter a Hugging Face id, or choose a Triton engine."
            )
        return Check("Artifact", ok=False, detail=detail, fix=fix)
    if spec.split_nodes > 1:
        detail = f"{spec.engine} splits only weights on a claim or in an image over several nodes."
        fix = f"Use 1 node, or {LLM_SERVICE}."
        return Check("Artifact", ok=False, detail=detail, fix=fix)
    return None


def _check_source(version: ModelVersion, spec: ServingSpec) -> Check | None:
    """Check external weights. None if the weights are in the portal's bucket."""
    llm = spec.llm
    if version.source_uri and spec.engine not in external_weights.parse(version.source_uri).engines:
        return _refuse_engine(version, spec)
    if llm is not None and (llm.hugging_face_id or llm.artifact):
        return _check_weights(llm)
    return None


def _refuse_engine(version: ModelVersion, spec: ServingSpec) -> Check:
    reference = external_weights.parse(version.source_uri)
    detail = f"{spec.engine} cannot load {version.source_uri}: it serves uploaded versions only."
    if spec.engine in LLM_ENGINES:
        detail = f"{spec.engine} loads weights by their Hugging Face id, not {version.source_uri}."
    return Check(
        "Artifact", ok=False, detail=detail, fix=f"Choose {' or '.join(reference.engines)}."
    )


def _check_weights(llm: Llm) -> Check:
    source = llm.hugging_face_id or llm.artifact
    detail = f"The weights come from {source}, which the portal does not verify."
    fix = ""
    weights = external_weights.from_spec(hugging_face_id=llm.hugging_face_id, artifact=llm.artifact)
    if weights is None or not weights.is_pinned:
        detail += " They can change after approval."
        fix = "" if weights is None else _describe_pin(weights)
    return Check("Artifact", ok=None, detail=detail, fix=fix, is_blocking=False)


def _describe_pin(reference: ExternalWeights) -> str:
    if reference.hugging_face_id:
        return f"Pin the commit: {reference.name}:<40 hexadecimal digits>."
    return reference.advice


def problem_with_objects(version: ModelVersion) -> str:
    changes = serving_bytes.compare_version(version, Bucket())
    return (
        f"The serving repository differs from the verified file: {serving_objects.describe_differences(changes)}."
        if changes
        else ""
    )


def check_signature(version: ModelVersion, stable: ModelVersion | None) -> list[Check]:
    """Check that clients of the stable version can call this one. Empty without a stable version."""
    if stable is None:
        return []
    served, new = signatures.from_json(stable.signature), signatures.from_json(version.signature)
    if not served.inputs or not new.inputs:
        detail = f"The inputs and outputs of {version.label} or {stable.label} are unknown."
        return [Check("Signature", ok=None, detail=detail)]
    breaks = compatibility.incompatibilities(served, new)
    if not breaks:
        detail = f"{version.label} is compatible with clients of {stable.label}."
        return [Check("Signature", ok=True, detail=detail)]
    fix = "Deploy it under a new name to keep existing clients working."
    return [Check("Signature", ok=False, detail=f"{'; '.join(breaks)}.", fix=fix)]


def check_engine(
    version: ModelVersion, spec: ServingSpec, capabilities: Capabilities, *, cluster_name: str
) -> Check:
    """Check that the cluster has the engine's kinds. Serving runtimes come with the deployment."""
    offer = capabilities.offers_engine(spec.engine)
    if offer.ok:
        detail = f"{cluster_name} supports {spec.engine}; its runtime is created automatically."
        note = capabilities.engine_notes.get(spec.engine, "")
        return Check("Engine", ok=True, detail=f"{detail} {note}".strip())
    if offer.ok is None:
        detail = offer.why or f"The capabilities of {cluster_name} have not been checked yet."
        return Check("Engine", ok=None, detail=detail)
    loads: Sequence[str] = loading.engines_for(
        version.source_uri, version.format, version.signature
    )
    if not version.source_uri and ONNX_ENGINES[0] in loads:
        loads = ENGINES
    others = [engine for engine in capabilities.engines or () if engine in loads]
    detail = f"{cluster_name} does not support {spec.engine}. {offer.why}".strip()
    return Check(
        "Engine", ok=False, detail=detail, fix=f"Choose {' or '.join(others) or 'another cluster'}."
    )


def check_settings(spec: ServingSpec, capabilities: Capabilities, *, cluster_name: str) -> Check:
    missing = cluster_support.missing(spec, capabilities)
    if not missing:
        return Check("Settings", ok=True, detail=f"{cluster_name} supports all requested settings.")
    detail = " ".join(f"{setting.path}: {setting.message}" for setting in missing)
    is_blocking = any(setting.is_blocking for setting in missing)
    return Check("Settings", ok=False, detail=detail, fix=missing[0].fix, is_blocking=is_blocking)


def check_tuning(version: ModelVersion, spec: ServingSpec) -> list[Check]:
    """Report settings that this model cannot use."""
    if spec.llm is not None:
        return language_checks.check_limits(version, spec, spec.llm)
    signature = signatures.from_json(version.signature)
    problems = [
        *triton_config.problems_with(signature, spec),
        *triton_config.warnings_of(signature, spec),
    ]
    return [
        Check(
            TRITON_SETTINGS,
            ok=False,
            detail=problem.message,
            fix=problem.fix,
            is_blocking=problem.is_blocking,
        )
        for problem in problems
    ]


def check_memory(
    version: ModelVersion,
    spec: ServingSpec,
    shares: Sequence[GpuShare | None],
    *,
    additional: Sequence[ModelVersion] = (),
) -> list[Check]:
    """Compare the memory of all models with the GPU share of each instance type. For the first, only a
    measurement blocks; another one is there for more capacity, so that it must have the memory.
    """
    need = _estimate(version, spec, additional)
    if need is None:
        detail = "The required GPU memory is unknown."
        return [Check("GPU memory", ok=None, detail=detail, is_blocking=False)]
    first, *others = shares
    checks = [_check_memory_of(need, spec, first)]
    for name, share in zip(spec.instance_types[1:], others, strict=True):
        check = _check_memory_of(need, spec, share)
        detail = f"{name}: {check.detail}"
        fix = f"Remove {name} from the other instance types." if check.ok is False else check.fix
        blocks = check.ok is not None
        checks.append(replace(check, name=OTHER_MEMORY, detail=detail, fix=fix, is_blocking=blocks))
    return checks


def _estimate(
    version: ModelVersion, spec: ServingSpec, additional: Sequence[ModelVersion]
) -> Need | None:
    if spec.llm is not None:
        size = declared_size.from_version(version.source_uri, version.metadata, version.signature)
        return language_models.estimate_need(spec.llm, size)
    tunings = zip(additional, spec.additional_models, strict=True)
    others = [(added, tuning.instances_per_gpu) for added, tuning in tunings]
    return measurements.estimate_need(version, instances=spec.instances_per_gpu, additional=others)


def _check_memory_of(need: Need, spec: ServingSpec, share: GpuShare | None) -> Check:
    if share is None or not share.vram_mib:
        detail = (
            f"Needs {need.range_on(spec.gpus * spec.split_nodes)} MiB; the memory of this GPU share "
            "is unknown."
        )
        return Check("GPU memory", ok=None, detail=detail, is_blocking=False)
    return _check_share(need, share, nodes=spec.split_nodes)


def _check_share(need: Need, share: GpuShare, *, nodes: int) -> Check:
    gpu_mib = share.vram_mib // share.gpus
    kind = "measured" if need.is_measured else "estimated"
    gpus = share.gpus * nodes
    detail = f"{need.range_on(gpus)} MiB {kind}, {gpu_mib:,} MiB on each GPU."
    if need.has_room(gpus=gpus, memory_mib=gpu_mib):
        return Check("GPU memory", ok=True, detail=detail, is_blocking=need.is_measured)
    fewer = "more GPUs or a shorter context" if need.can_split else "fewer instances per GPU"
    fix = f"Choose a GPU share with more memory or {fewer}."
    return Check("GPU memory", ok=False, detail=detail, fix=fix, is_blocking=need.is_measured)
