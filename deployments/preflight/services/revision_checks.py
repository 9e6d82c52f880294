"""Checks of a request that look at one thing each, with the fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.selectors import addresses
from deployments.preflight.services import cost
from deployments.registry.domain import (
    compatibility,
    laid_out,
    references,
    signatures,
    triton_config,
)
from deployments.registry.domain.references import Reference
from deployments.registry.gateways.object_store import ArtifactError
from deployments.sizing.domain import language_models, stated_size
from deployments.sizing.domain.memory import Need
from deployments.sizing.selectors import measurements
from deployments.spec.domain import cluster_support
from deployments.spec.domain.engines import ENGINES, LLM_ENGINES
from deployments.spec.domain.serving_spec import Llm, ServingSpec
from deployments.states import VersionState
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.selectors.clusters import ClusterInfo

_MAY_HEAL: Final = (VersionState.UPLOADING, VersionState.VERIFYING)
_AGAIN = "Upload the file again as a new version, and request that one."


def of_name(cluster: ClusterInfo, context: ManifestContext) -> Check:
    if context.deployment in addresses.pipelines_at(
        cluster_id=cluster.id, namespace=context.namespace
    ):
        detail = f"A pipeline already uses the address {context.namespace}/{context.deployment}."
        return Check("Name", ok=False, detail=detail, fix="Choose another name.")
    if context.deployment in addresses.deployments_at(
        cluster_id=cluster.id, namespace=context.namespace
    ):
        detail = f"{context.namespace}/{context.deployment} already exists on {cluster.name}."
        fix = "Choose another name or request a canary on that deployment."
        return Check("Name", ok=False, detail=detail, fix=fix)
    return Check("Name", ok=True, detail=f"{context.deployment} is available.")


def of_version(version: ModelVersion) -> Check:
    if version.state == VersionState.READY:
        return Check("Version", ok=True, detail=f"{version.label} is ready.")
    fix = "Wait until it is verified." if version.state in _MAY_HEAL else "Choose another version."
    detail = f"{version.label} is {version.state}. {version.state_reason}".strip()
    return Check("Version", ok=False, detail=detail, fix=fix)


def of_artifact(version: ModelVersion, spec: ServingSpec, *, is_ready: bool) -> list[Check]:
    """Whether serving will find exactly the objects that were laid out. Not asked of unready ones."""
    elsewhere = _of_source(version, spec)
    if elsewhere is not None:
        return [elsewhere]
    if not is_ready:
        return []
    if spec.engine in LLM_ENGINES:
        words = f"{spec.engine} cannot load {version.filename}."
        fix = "Choose a version by reference, enter a Hugging Face id, or choose a Triton engine."
        return [Check("Artifact", ok=False, detail=words, fix=fix)]
    try:
        problem = problem_with_objects(version)
    except ArtifactError as error:
        words = f"The file could not be checked: object storage did not respond: {error}"
        return [Check("Artifact", ok=None, detail=words)]
    if problem:
        return [Check("Artifact", ok=False, detail=problem, fix=_AGAIN)]
    words = f"{version.size_bytes:,} bytes and the configuration are in the serving repository."
    return [Check("Artifact", ok=True, detail=words)]


def _of_source(version: ModelVersion, spec: ServingSpec) -> Check | None:
    """Of weights that lie elsewhere; None where the portal's bucket holds what is served."""
    llm = spec.llm
    if version.source_uri and spec.engine not in references.parse(version.source_uri).engines:
        return _not_loadable(version, spec)
    if llm is not None and (llm.hugging_face_id or llm.artifact):
        return _of_weights(llm)
    return None


def _not_loadable(version: ModelVersion, spec: ServingSpec) -> Check:
    reference = references.parse(version.source_uri)
    words = f"{spec.engine} cannot load {version.source_uri}: it serves uploaded versions only."
    if spec.engine in LLM_ENGINES:
        words = f"{spec.engine} loads weights by their Hugging Face id, not {version.source_uri}."
    return Check(
        "Artifact", ok=False, detail=words, fix=f"Choose {' or '.join(reference.engines)}."
    )


def _of_weights(llm: Llm) -> Check:
    source = llm.hugging_face_id or llm.artifact
    words = f"The weights come from {source}, which the portal does not verify."
    fix = ""
    found = references.of_spec(hugging_face_id=llm.hugging_face_id, artifact=llm.artifact)
    if found is None or not found.is_pinned:
        words += " They can change after approval."
        fix = "" if found is None else _pin_words(found)
    return Check("Artifact", ok=None, detail=words, fix=fix, is_blocking=False)


def _pin_words(reference: Reference) -> str:
    if reference.hugging_face_id:
        return f"Pin the commit: {reference.name}:<40 hexadecimal digits>."
    return reference.advice


def problem_with_objects(version: ModelVersion) -> str:
    found = serving_bytes.of_version(version, Bucket())
    return (
        f"The serving repository differs from the verified file: {laid_out.words(found)}."
        if found
        else ""
    )


def of_signature(version: ModelVersion, stable: ModelVersion | None) -> list[Check]:
    """Only where something serves already: its clients must be able to go on."""
    if stable is None:
        return []
    if not stable.signature.get("inputs") or not version.signature.get("inputs"):
        words = f"The inputs and outputs of {version.label} or {stable.label} are unknown."
        return [Check("Signature", ok=None, detail=words)]
    breaks = compatibility.breaks(
        signatures.from_json(stable.signature), signatures.from_json(version.signature)
    )
    if not breaks:
        words = f"{version.label} is compatible with clients of {stable.label}."
        return [Check("Signature", ok=True, detail=words)]
    fix = "Deploy it under a new name to keep existing clients working."
    return [Check("Signature", ok=False, detail=f"{'; '.join(breaks)}.", fix=fix)]


def of_engine(
    version: ModelVersion, spec: ServingSpec, offered: Capabilities, *, where: str
) -> Check:
    """The serving runtime comes with the deployment, so the engine's own kinds are enough."""
    offer = offered.offers_engine(spec.engine)
    if offer.ok:
        return Check(
            "Engine",
            ok=True,
            detail=(f"{where} supports {spec.engine}; its runtime is created automatically."),
        )
    if offer.ok is None:
        words = offer.why or f"The capabilities of {where} have not been checked yet."
        return Check("Engine", ok=None, detail=words)
    loads = references.parse(version.source_uri).engines if version.source_uri else ENGINES
    others = [engine for engine in offered.engines or () if engine in loads]
    detail = f"{where} does not support {spec.engine}. {offer.why}".strip()
    return Check(
        "Engine", ok=False, detail=detail, fix=f"Choose {' or '.join(others) or 'another cluster'}."
    )


def of_settings(spec: ServingSpec, offered: Capabilities, *, where: str) -> Check:
    found = cluster_support.missing(spec, offered)
    if not found:
        return Check("Settings", ok=True, detail=f"{where} supports all requested settings.")
    words = " ".join(f"{one.path}: {one.words}" for one in found)
    is_blocking = any(one.is_blocking for one in found)
    return Check("Settings", ok=False, detail=words, fix=found[0].fix, is_blocking=is_blocking)


def of_tuning(version: ModelVersion, spec: ServingSpec) -> list[Check]:
    """Only what this model cannot use is told."""
    if spec.llm is not None:
        return _of_context(version, spec.llm)
    problem = triton_config.problem_with(signatures.from_json(version.signature), spec)
    if not problem:
        return []
    words, _, fix = problem.partition(": ")
    return [Check("Batching", ok=False, detail=f"{words}.", fix=f"{fix[:1].upper()}{fix[1:]}")]


def _of_context(version: ModelVersion, llm: Llm) -> list[Check]:
    """vLLM does not start with more than the model itself takes. What is stated may be wrong, so it
    refuses nothing.
    """
    stated = stated_size.of_version(version.source_uri, version.metadata).context_length
    if not stated or llm.max_model_len <= stated:
        return []
    words = (
        f"{llm.max_model_len:,} tokens are requested, but the context length of "
        f"{version.label} is {stated:,}."
    )
    fix = "Request fewer tokens or correct the metadata of the version."
    return [Check("Context", ok=False, detail=words, fix=fix, is_blocking=False)]


def of_memory(
    version: ModelVersion,
    spec: ServingSpec,
    shares: Sequence[GpuShare],
    *,
    packed: Sequence[ModelVersion] = (),
) -> Check:
    """An estimate that is too large is told; only a measurement refuses. Of all models together."""
    share = cost.share_for(list(shares), spec)
    if spec.llm is not None:
        stated = stated_size.of_version(version.source_uri, version.metadata)
        need = language_models.need_of(spec.llm, precision=stated.precision)
    else:
        tunings = zip(packed, spec.packed, strict=True)
        others = [(one, tuning.instances_per_gpu) for one, tuning in tunings]
        need = measurements.need_of(version, instances=spec.instances_per_gpu, packed=others)
    if need is None:
        words = "The required GPU memory is unknown."
        return Check("GPU memory", ok=None, detail=words, is_blocking=False)
    if share is None or not share.vram_mib:
        words = (
            f"Needs {need.range_on(spec.gpus * spec.nodes)} MiB; the memory of this GPU share "
            "is unknown."
        )
        return Check("GPU memory", ok=None, detail=words, is_blocking=False)
    return _of_share(need, share, nodes=spec.nodes)


def _of_share(need: Need, share: GpuShare, *, nodes: int) -> Check:
    there = share.vram_mib // share.gpus
    kind = "measured" if need.is_measured else "estimated"
    gpus = share.gpus * nodes
    words = f"{need.range_on(gpus)} MiB {kind}, {there:,} MiB on each GPU."
    if need.has_room(gpus=gpus, memory_mib=there):
        return Check("GPU memory", ok=True, detail=words, is_blocking=need.is_measured)
    fewer = "more GPUs or a shorter context" if need.can_split else "fewer instances per GPU"
    fix = f"Choose a GPU share with more memory or {fewer}."
    return Check("GPU memory", ok=False, detail=words, fix=fix, is_blocking=need.is_measured)
