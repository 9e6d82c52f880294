"""Checks of a request that look at one thing each, with the fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deployments.domain import (
    compatibility,
    layout,
    references,
    signatures,
    sizing_language,
    spec_offers,
    stated_models,
    triton_config,
)
from deployments.domain.manifests.parts import Place
from deployments.domain.preflight import Check
from deployments.domain.references import Reference
from deployments.domain.sizing_needs import Need
from deployments.domain.spec_engines import ENGINES, LLM_ENGINES
from deployments.domain.specs import Llm, ServingSpec
from deployments.domain.states import VersionState
from deployments.gateways import artifacts
from deployments.gateways.artifacts import ArtifactError, ObjectMissing
from deployments.models import Deployment, ModelVersion, Pipeline
from deployments.selectors import measurements
from deployments.services import costing
from fleet.domain import node_pools
from fleet.domain.capabilities import Capabilities
from fleet.domain.node_pools import NodePool
from fleet.selectors import capacity
from fleet.selectors.capacity import GpuShare
from fleet.selectors.clusters import ClusterInfo

CAPACITY: Final = "Capacity now"
_MAY_HEAL: Final = (VersionState.UPLOADING, VersionState.VERIFYING)
_AGAIN = "Upload the file again as a new version, and request that one."


def of_name(cluster: ClusterInfo, place: Place) -> Check:
    wanted = {"cluster_id": cluster.id, "namespace": place.namespace, "name": place.deployment}
    if Pipeline.objects.filter(**wanted, is_retired=False).exists():
        detail = f"A pipeline has the address {place.namespace}/{place.deployment} already."
        return Check("Name", ok=False, detail=detail, fix="Choose another name.")
    if Deployment.objects.filter(**wanted, is_retired=False).exists():
        detail = f"{place.namespace}/{place.deployment} already exists on {cluster.name}."
        fix = "Choose another name, or request a canary on that deployment."
        return Check("Name", ok=False, detail=detail, fix=fix)
    return Check("Name", ok=True, detail=f"{place.deployment} is free and legal.")


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
        fix = "Choose a version by reference, name a Hugging Face id, or choose a Triton engine."
        return [Check("Artifact", ok=False, detail=words, fix=fix)]
    try:
        problem = problem_with_objects(version)
    except ArtifactError as error:
        words = f"The object store did not answer, so the file was not looked at: {error}"
        return [Check("Artifact", ok=None, detail=words)]
    if problem:
        return [Check("Artifact", ok=False, detail=problem, fix=_AGAIN)]
    words = f"{version.size_bytes:,} bytes and their config lie where serving reads them."
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
    words = f"{spec.engine} cannot load {version.source_uri}: it serves what was uploaded."
    if spec.engine in LLM_ENGINES:
        words = f"{spec.engine} loads weights by their Hugging Face id, not {version.source_uri}."
    return Check(
        "Artifact", ok=False, detail=words, fix=f"Choose {' or '.join(reference.engines)}."
    )


def _of_weights(llm: Llm) -> Check:
    source = llm.hugging_face_id or llm.artifact
    words = f"The weights come from {source}, which the portal does not read."
    fix = ""
    found = references.of_spec(hugging_face_id=llm.hugging_face_id, artifact=llm.artifact)
    if found is None or not found.is_pinned:
        words += " They may change after the approval."
        fix = "" if found is None else _pin_words(found)
    return Check("Artifact", ok=None, detail=words, fix=fix, is_blocking=False)


def _pin_words(reference: Reference) -> str:
    if reference.hugging_face_id:
        return f"Pin the commit: {reference.name}:<40 hexadecimal digits>."
    return reference.advice


def problem_with_objects(version: ModelVersion) -> str:
    """The digest was compared when it was laid out; names and size tell a later change."""
    store, name = artifacts.store(), version.model.name
    prefix = version.repository_prefix
    model_key = layout.model_file_key(prefix, name)
    wanted, there = {model_key, layout.config_key(prefix, name)}, set(store.list_keys(prefix))
    # Revisions with settings of their own bring their configurations, named after their content.
    there = {key for key in there if not layout.is_settings_key(prefix, name, key)}
    if there != wanted:
        odd = ", ".join(sorted(key.removeprefix(prefix) for key in there ^ wanted)[:3])
        return f"What serving reads is not what was verified: {odd}."
    try:
        size = store.head(model_key).size_bytes
    except ObjectMissing:
        return "The file that serving reads is gone from the bucket."
    if size != version.size_bytes:
        return f"Serving would read {size:,} bytes; {version.size_bytes:,} were verified."
    return ""


def of_signature(version: ModelVersion, stable: ModelVersion | None) -> list[Check]:
    """Only where something serves already: its clients must be able to go on."""
    if stable is None:
        return []
    if not stable.signature.get("inputs") or not version.signature.get("inputs"):
        words = f"The inputs and outputs of {version.label} or {stable.label} are not known."
        return [Check("Signature", ok=None, detail=words)]
    breaks = compatibility.breaks(
        signatures.from_json(stable.signature), signatures.from_json(version.signature)
    )
    if not breaks:
        words = f"Clients of {stable.label} can call {version.label}."
        return [Check("Signature", ok=True, detail=words)]
    fix = "Deploy it under a name of its own, so that today's clients are not broken."
    return [Check("Signature", ok=False, detail=f"{'; '.join(breaks)}.", fix=fix)]


def of_engine(
    version: ModelVersion, spec: ServingSpec, offered: Capabilities, *, where: str
) -> Check:
    """The serving runtime comes with the deployment, so the engine's own kinds are enough."""
    offer = offered.offers_engine(spec.engine)
    if offer.ok:
        return Check(
            "Engine", ok=True, detail=f"{where} runs {spec.engine}; its runtime comes along."
        )
    if offer.ok is None:
        words = offer.why or f"{where} has not been asked yet what it can do."
        return Check("Engine", ok=None, detail=words)
    loads = references.parse(version.source_uri).engines if version.source_uri else ENGINES
    others = [engine for engine in offered.engines or () if engine in loads]
    detail = f"{where} cannot run {spec.engine}. {offer.why}".strip()
    return Check(
        "Engine", ok=False, detail=detail, fix=f"Choose {' or '.join(others) or 'another cluster'}."
    )


def of_settings(spec: ServingSpec, offered: Capabilities, *, where: str) -> Check:
    found = spec_offers.missing(spec, offered)
    if not found:
        return Check("Settings", ok=True, detail=f"{where} can do all that is asked.")
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
    stated = stated_models.of_version(version.source_uri, version.metadata).context_length
    if not stated or llm.max_model_len <= stated:
        return []
    words = (
        f"{llm.max_model_len:,} tokens are asked for; {version.label} is stated to take {stated:,}."
    )
    fix = "Ask for fewer, or correct the metadata of the version."
    return [Check("Context", ok=False, detail=words, fix=fix, is_blocking=False)]


def of_memory(
    version: ModelVersion,
    spec: ServingSpec,
    shares: Sequence[GpuShare],
    *,
    packed: Sequence[ModelVersion] = (),
) -> Check:
    """An estimate that is too large is told; only a measurement refuses. Of all models together."""
    share = costing.share_for(list(shares), spec)
    if spec.llm is not None:
        stated = stated_models.of_version(version.source_uri, version.metadata)
        need = sizing_language.need_of(spec.llm, precision=stated.precision)
    else:
        tunings = zip(packed, spec.packed, strict=True)
        others = [(one, tuning.instances_per_gpu) for one, tuning in tunings]
        need = measurements.need_of(version, instances=spec.instances_per_gpu, packed=others)
    if need is None:
        words = "How much GPU memory it needs is not known."
        return Check("GPU memory", ok=None, detail=words, is_blocking=False)
    if share is None or not share.vram_mib:
        words = (
            f"Needs {need.mib_on(spec.gpus * spec.nodes):,} MiB; what the share has is not known."
        )
        return Check("GPU memory", ok=None, detail=words, is_blocking=False)
    return _of_share(need, share, nodes=spec.nodes)


def _of_share(need: Need, share: GpuShare, *, nodes: int) -> Check:
    there = share.vram_mib // share.gpus
    kind = "measured" if need.is_measured else "estimated"
    gpus = share.gpus * nodes
    words = f"{need.mib_on(gpus):,} MiB {kind}, {there:,} MiB on each GPU."
    if need.has_room(gpus=gpus, memory_mib=there):
        return Check("GPU memory", ok=True, detail=words, is_blocking=need.is_measured)
    fewer = "more GPUs or a shorter context" if need.can_split else "fewer instances per GPU"
    fix = f"Choose a share with more memory, or {fewer}."
    return Check("GPU memory", ok=False, detail=words, fix=fix, is_blocking=need.is_measured)


def of_capacity(spec: ServingSpec, offered: Capabilities, *, cluster_id: int) -> Check:
    """Too little room now does not refuse: nodes can start, and others can finish."""
    fit = capacity.fits_now(
        cluster_id=cluster_id,
        instance_type=spec.instance_type,
        gpu_resource=spec.gpu_resource,
        gpus=spec.gpus,
        replicas=spec.min_replicas * spec.nodes,
    )
    if fit.ok:
        return Check(CAPACITY, ok=True, detail=fit.reason, is_blocking=False)
    if offered.node_pools is not None:
        return _by_scale_up(spec, offered.node_pools, now=fit.reason)
    if offered.feature("karpenter").is_there:
        words = (
            f"{fit.reason} Karpenter starts nodes where a node pool allows {spec.instance_type}."
        )
        fix = "It waits for a node: usually minutes. Choose a share that is free to start at once."
        return Check(CAPACITY, ok=None, detail=words, fix=fix, is_blocking=False)
    fix = "It would wait for room: choose another GPU, or free some first."
    return Check(CAPACITY, ok=False, detail=fit.reason, fix=fix, is_blocking=False)


def _by_scale_up(spec: ServingSpec, pools: Sequence[NodePool], *, now: str) -> Check:
    start = node_pools.could_start(
        pools,
        instance_type=spec.instance_type,
        capacity=spec.placement.capacity,
        gpus=spec.gpus * spec.min_replicas * spec.nodes,
    )
    words = f"{now} {start.words}"
    if start.ok:
        return Check(CAPACITY, ok=True, detail=words, is_blocking=False)
    fix = "It would wait for room: choose another GPU, or let an admin change the node pool."
    return Check(CAPACITY, ok=False, detail=words, fix=fix, is_blocking=False)
