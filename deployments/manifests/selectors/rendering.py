"""Reads rows into the input of manifests: contexts, specs, versions and served revisions. `rendered.py` builds these."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings

from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import (
    AdditionalModelFiles,
    ManifestContext,
    ServedFile,
    ServedRevision,
)
from deployments.manifests.domain.model_files import bucket_files
from deployments.manifests.domain.model_files.bucket_files import (
    AdditionalServingFiles,
    ServingFiles,
)
from deployments.manifests.selectors import golden_warm_up
from deployments.models import Deployment, ModelVersion, Pipeline, Revision
from deployments.plans.domain import baseline
from deployments.registry.domain import object_keys, serving_objects, signatures
from deployments.sizing.domain.onnx import MIB
from deployments.spec.domain import replicas, serving_spec
from deployments.spec.domain.engines import (
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    LLM_SERVICE,
    ONNX_ENGINES,
    OPENAI_ENGINES,
    TRITON_VLLM,
)
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from fleet.clusters.domain import serving_policy
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors.default_serving_policy import default_policy
from fleet.gpus.domain import neuron
from portal.core.definitions import Rejected

LOCAL: Final = "local"
# Where the cluster shows none.
_PROMETHEUS_NAMESPACES: Final = ("monitoring",)


def context_of(deployment: Deployment) -> ManifestContext:
    return context_for(
        team=deployment.team.slug,
        name=deployment.name,
        deployment_id=deployment.pk,
        cluster=deployment.cluster,
        policy=policy_of(deployment),
        capabilities=Capabilities.from_json(deployment.cluster.capabilities),
    )


def policy_in_force(policy: ServingPolicy) -> ServingPolicy:
    """Return a cluster's own policy, with the portal's defaults for empty fields."""
    return _with_defaults(policy, default_policy())


@functools.lru_cache(maxsize=256)
def _with_defaults(policy: ServingPolicy, default: ServingPolicy) -> ServingPolicy:
    return policy.with_defaults(default)


def policy_of(subject: Deployment | Pipeline) -> ServingPolicy:
    return ServingPolicy.from_json(subject.cluster.serving)


def context_for(
    *,
    team: str,
    name: str,
    deployment_id: int,
    cluster: Any,
    policy: ServingPolicy,
    capabilities: Capabilities,
) -> ManifestContext:
    """Return the context of a deployment's manifests. `cluster` is fleet's row or its ClusterInfo: kind,
    gateway_namespace and gateway_name are read.
    """
    used = policy_in_force(policy)
    return ManifestContext(
        team=team,
        namespace=team,
        deployment=name,
        deployment_id=deployment_id,
        is_local_cluster=cluster.kind == LOCAL,
        gateway_namespace=cluster.gateway_namespace,
        gateway_name=cluster.gateway_name,
        triton_image=used.triton_image,
        storage_image=used.storage_image,
        s3_endpoint=settings.SLIPWAY_S3_ENDPOINT_URL,
        s3_region=settings.SLIPWAY_S3_REGION,
        role_arn=used.role_for(team),
        storage_secret=used.storage_secret,
        vllm_image=used.vllm_image,
        sglang_image=used.sglang_image,
        tensorrt_llm_image=used.tensorrt_llm_image,
        prometheus_url=used.prometheus_url,
        cache_node_group=used.cache_node_group,
        monitor_labels=tuple(sorted(capabilities.monitor_labels.items())),
        pod_security=used.pod_security or serving_policy.RESTRICTED,
        egress_cidrs=used.egress_cidrs,
        control_plane_cidrs=used.control_plane_cidrs or capabilities.api_server_cidrs,
        metrics_namespaces=used.prometheus_namespaces
        or capabilities.prometheus_namespaces
        or _PROMETHEUS_NAMESPACES,
        proxy_namespaces=used.gateway_namespaces,
        verifies_tokens=capabilities.verifies_tokens,
        has_pipeline_keys=capabilities.offers("protected-pipeline").ok is True,
        node_labels=capabilities.node_labels,
    )


def spec_of(revision: Revision, *, scale: Mapping[str, Any] | None = None) -> ServingSpec:
    """Return the spec with the replicas approved since the revision was created, or of `scale`."""
    if scale is None:
        scale = revision.deployment.scale
    return replicas.apply_scale(
        serving_spec.read_stored(revision.spec), number=revision.number, scale=scale
    )


def stable_spec_of(deployment: Deployment) -> ServingSpec | None:
    """Return the stable revision's spec as it was requested. None while nothing serves."""
    stable = deployment.stable_revision
    return None if stable is None else serving_spec.read_stored(stable.spec)


def served_revision_for(
    *,
    number: int,
    version: ModelVersion,
    spec: ServingSpec,
    additional: Sequence[ModelVersion],
    files: ServingFiles,
) -> ServedRevision:
    """Return the input of a revision's manifests. `additional` and `files` as `additional_versions` and
    `files_for` return them.
    """
    return ServedRevision(
        number=number,
        model_name=version.model.name,
        version_label=version.label,
        sha256=version.sha256,
        storage_uri=_storage_uri(version, files),
        spec=spec,
        size_mib=_size_mib(version),
        config_name=files.config_name,
        additional_models=tuple(_additional_model_files(other) for other in additional),
        files=_served_files([version, *additional], spec, files),
        source_uri=version.source_uri,
    )


def _storage_uri(version: ModelVersion, files: ServingFiles) -> str:
    """Return Triton's model repository. For a version by reference it is in the portal's bucket, if any."""
    if version.source_uri and not files.prefix:
        return version.source_uri
    return f"s3://{version.bucket or settings.SLIPWAY_S3_BUCKET}/{files.prefix}"


def additional_versions(version: ModelVersion, spec: ServingSpec) -> list[ModelVersion]:
    """Return the versions of multi-model serving besides the revision's own, in the order of the spec."""
    return versions_named(version, spec.additional_models)


def versions_named(
    version: ModelVersion, additional_models: Sequence[AdditionalModel]
) -> list[ModelVersion]:
    """Return the further versions of the version's team, in this order. Raises Rejected for a version that the
    team does not have: nothing is served without it.
    """
    if not additional_models:
        return []
    models = [further.model for further in additional_models]
    rows = ModelVersion.objects.select_related("model__team")
    rows = rows.filter(model__team=version.model.team_id, model__name__in=models)
    by_label = {(row.model.name, row.number): row for row in rows}
    problems = {}
    for index, further in enumerate(additional_models):
        if further.model == version.model.name:
            problem = f"{further.model} is served already: name another model."
            problems[f"additional_models.{index}.model"] = problem
        elif (further.model, further.version) not in by_label:
            problem = f"{version.model.team.slug} has no version {further.label}."
            problems[f"additional_models.{index}.version"] = problem
    if problems:
        raise Rejected(" ".join(problems.values()), problems)
    return [by_label[further.model, further.version] for further in additional_models]


def _served_files(
    versions: Sequence[ModelVersion], spec: ServingSpec, files: ServingFiles
) -> tuple[ServedFile, ...]:
    """Return the recorded files of the versions and those that the revision adds."""
    digests = {key: hashlib.sha256(body).hexdigest() for key, body in files.objects.items()}
    roots = [files.prefix]
    if loads_versions(spec):
        roots = [version.repository_prefix for version in versions]
        for version in versions:
            recorded = serving_objects.from_json(version.laid_out)
            digests |= {item.key: item.sha256 for item in recorded}
    return tuple(
        ServedFile(key.removeprefix(root), digests[key])
        for root in roots
        for key in sorted(digests)
        if root and key.startswith(root)
    )


def loads_versions(spec: ServingSpec) -> bool:
    """Whether pods load the files of versions: with Triton, or uploaded weights of a language model."""
    if spec.llm is None:
        return spec.engine in ONNX_ENGINES
    has_external_weights = spec.llm.hugging_face_id or spec.llm.artifact
    return spec.engine in OPENAI_ENGINES and not has_external_weights


def _additional_model_files(version: ModelVersion) -> AdditionalModelFiles:
    name = version.model.name
    directory = object_keys.model_directory(version.repository_prefix, name)
    return AdditionalModelFiles(
        model_name=name,
        version_label=version.label,
        sha256=version.sha256,
        uri=f"s3://{version.bucket}/{directory}",
        size_mib=_size_mib(version),
    )


def _size_mib(version: ModelVersion) -> int:
    return -(-(version.size_bytes or version.declared_size_bytes) // MIB)


def image_for(spec: ServingSpec, policy: ServingPolicy) -> str:
    """Return the cluster's server image for the engine. Empty where the cluster's own preset names it."""
    used = policy_in_force(policy)
    if spec.engine in ONNX_ENGINES:
        return used.triton_image
    if spec.engine == TRITON_VLLM:
        return used.triton_vllm_image
    if spec.engine == KSERVE_SGLANG:
        return used.sglang_image
    if spec.engine == KSERVE_TENSORRT_LLM:
        return used.tensorrt_llm_image
    if spec.gpu_resource == neuron.DEVICE:
        return used.vllm_neuron_image
    is_preset = spec.engine == LLM_SERVICE or spec.nodes > 1
    return "" if is_preset else used.vllm_image


def files_for(
    *, version: ModelVersion, spec: ServingSpec, additional: Sequence[ModelVersion]
) -> ServingFiles:
    """Return the objects that must be in the bucket before the revision is pushed, besides the versions'."""
    return bucket_files.plan(
        team=version.model.team.slug,
        model=version.model.name,
        number=version.number,
        prefix=version.repository_prefix,
        signature=signatures.from_json(version.signature),
        spec=spec,
        additional_models=[
            AdditionalServingFiles(
                other.repository_prefix, signatures.from_json(other.signature), tuning
            )
            for other, tuning in zip(additional, spec.additional_models, strict=True)
        ],
        golden=golden_warm_up.samples_of(version, spec),
    )


def backends_of(
    deployment: Deployment, spec_of_revision: Callable[[Revision], ServingSpec]
) -> list[http_route.RouteBackend]:
    weight = deployment.candidate_weight
    of_baseline = baseline.share_at(weight) if deployment.baseline_revision else 0
    weighted = [
        (deployment.stable_revision, 100 - weight - of_baseline, 0),
        (deployment.baseline_revision, of_baseline, 0),
        (deployment.candidate_revision, weight, deployment.candidate_mirror),
    ]
    return [
        http_route.backend_for(
            revision.number,
            spec_of_revision(revision),
            percent,
            model=revision.version.model.name,
            mirror=mirror,
        )
        for revision, percent, mirror in weighted
        if revision is not None
    ]
