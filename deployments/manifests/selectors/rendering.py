"""From rows to manifests: what the portal writes to a cluster for a deployment and its revisions."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings

from deployments.errors import Rejected
from deployments.manifests.domain import bucket_files, http_route
from deployments.manifests.domain import revision as revision_manifests
from deployments.manifests.domain.bucket_files import PackedFiles, ServingFiles
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    PackedModel,
    ServedFile,
    ServedRevision,
    to_yaml,
)
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.registry.domain import object_keys, signatures
from deployments.sizing.domain.onnx import MIB
from deployments.spec.domain import replicas, serving_spec
from deployments.spec.domain.engines import LLM_SERVICE, ONNX_ENGINES, TRITON_VLLM
from deployments.spec.domain.serving_spec import Packed, ServingSpec
from fleet.clusters.domain import serving_policy
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors.default_serving_policy import default_policy

LOCAL: Final = "local"


def context_of(deployment: Deployment) -> ManifestContext:
    return context_for(
        team=deployment.team.slug,
        name=deployment.name,
        deployment_id=deployment.pk,
        cluster=deployment.cluster,
        policy=policy_of(deployment),
    )


def policy_in_force(policy: ServingPolicy) -> ServingPolicy:
    """A cluster's own policy, filled with what is usual where it says nothing."""
    return _filled(policy, default_policy())


@functools.lru_cache(maxsize=256)
def _filled(policy: ServingPolicy, usual: ServingPolicy) -> ServingPolicy:
    return policy.over(usual)


def policy_of(deployment: Deployment) -> ServingPolicy:
    return ServingPolicy.from_json(deployment.cluster.serving)


def context_for(
    *, team: str, name: str, deployment_id: int, cluster: Any, policy: ServingPolicy
) -> ManifestContext:
    """`cluster` is fleet's row or its ClusterInfo: kind, gateway_namespace and gateway_name are
    read. What its policy leaves empty is as the portal's settings say.
    """
    used = _filled(policy, default_policy())
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
        prometheus_url=used.prometheus_url,
        cache_node_group=used.cache_node_group,
        pod_security=used.pod_security or serving_policy.RESTRICTED,
        egress_cidrs=used.egress_cidrs,
        control_plane_cidrs=used.control_plane_cidrs,
    )


def spec_of(revision: Revision, *, scale: Mapping[str, Any] | None = None) -> ServingSpec:
    """With the replicas that were approved since the revision was made, or those of `scale`."""
    wanted = revision.deployment.scale if scale is None else scale
    return replicas.scaled(serving_spec.stored(revision.spec), number=revision.number, scale=wanted)


def served_revision_of(
    revision: Revision, *, scale: Mapping[str, Any] | None = None
) -> ServedRevision:
    spec = spec_of(revision, scale=scale)
    return served_revision_for(number=revision.number, version=revision.version, spec=spec)


def served_revision_for(*, number: int, version: ModelVersion, spec: ServingSpec) -> ServedRevision:
    packed = packed_of(version, spec)
    files = _files(version, spec, packed)
    return ServedRevision(
        number=number,
        model_name=version.model.name,
        version_label=version.label,
        sha256=version.sha256,
        storage_uri=_storage_uri(version, files),
        spec=spec,
        size_mib=_size_mib(version),
        config_name=files.config_name,
        packed=tuple(_packed_model(one) for one in packed),
        files=_served_files([version, *packed], spec, files),
        source_uri=version.source_uri,
    )


def _storage_uri(version: ModelVersion, files: ServingFiles) -> str:
    """Triton's repository. Where a version by reference gets one, it lies in the portal's bucket."""
    if version.source_uri and not files.prefix:
        return version.source_uri
    return f"s3://{version.bucket or settings.SLIPWAY_S3_BUCKET}/{files.prefix}"


def packed_of(version: ModelVersion, spec: ServingSpec) -> list[ModelVersion]:
    """As `versions_named`, of the spec."""
    return versions_named(version, spec.packed)


def versions_named(version: ModelVersion, packed: Sequence[Packed]) -> list[ModelVersion]:
    """The further versions of the version's team, in this order.

    Raises Rejected for what the team has not: nothing is served without what was asked for.
    """
    if not packed:
        return []
    models = [one.model for one in packed]
    rows = ModelVersion.objects.select_related("model__team")
    rows = rows.filter(model__team=version.model.team_id, model__name__in=models)
    found = {(row.model.name, row.number): row for row in rows}
    wrong = {}
    for index, one in enumerate(packed):
        if one.model == version.model.name:
            words = f"{one.model} is served already: name another model."
            wrong[f"packed.{index}.model"] = words
        elif (one.model, one.version) not in found:
            words = f"{version.model.team.slug} has no version {one.label}."
            wrong[f"packed.{index}.version"] = words
    if wrong:
        raise Rejected(" ".join(wrong.values()), wrong)
    return [found[one.model, one.version] for one in packed]


def _served_files(
    found: Sequence[ModelVersion], spec: ServingSpec, files: ServingFiles
) -> tuple[ServedFile, ...]:
    """What was recorded of the versions when they were laid out, and what the revision brings."""
    digests = {key: hashlib.sha256(body).hexdigest() for key, body in files.objects.items()}
    roots = [files.prefix]
    if spec.engine in ONNX_ENGINES:
        roots = [one.repository_prefix for one in found]
        digests |= {row["key"]: row["sha256"] for one in found for row in one.laid_out}
    return tuple(
        ServedFile(key.removeprefix(root), digests[key])
        for root in roots
        for key in sorted(digests)
        if root and key.startswith(root)
    )


def _packed_model(version: ModelVersion) -> PackedModel:
    name = version.model.name
    directory = object_keys.model_directory(version.repository_prefix, name)
    return PackedModel(
        model_name=name,
        version_label=version.label,
        sha256=version.sha256,
        uri=f"s3://{version.bucket}/{directory}",
        size_mib=_size_mib(version),
    )


def _size_mib(version: ModelVersion) -> int:
    return -(-(version.size_bytes or version.declared_size_bytes) // MIB)


def image_for(spec: ServingSpec, policy: ServingPolicy) -> str:
    """The cluster's server image for the engine; empty where the cluster's own preset brings it."""
    used = _filled(policy, default_policy())
    if spec.engine in ONNX_ENGINES:
        return used.triton_image
    if spec.engine == TRITON_VLLM:
        return used.triton_vllm_image
    is_preset = spec.engine == LLM_SERVICE or spec.nodes > 1
    return "" if is_preset else used.vllm_image


def files_for(*, version: ModelVersion, spec: ServingSpec) -> ServingFiles:
    """What must lie in the bucket before the revision is pushed, beside the versions themselves."""
    return _files(version, spec, packed_of(version, spec))


def _files(
    version: ModelVersion, spec: ServingSpec, packed: Sequence[ModelVersion]
) -> ServingFiles:
    return bucket_files.plan(
        team=version.model.team.slug,
        model=version.model.name,
        number=version.number,
        prefix=version.repository_prefix,
        signature=signatures.from_json(version.signature),
        spec=spec,
        packed=[
            PackedFiles(one.repository_prefix, signatures.from_json(one.signature), tuning)
            for one, tuning in zip(packed, spec.packed, strict=True)
        ],
    )


def manifests_for(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Everything of a revision except the Secret, whose content is nobody's to see."""
    return [
        *revision_manifests.shared(context, served),
        *revision_manifests.own(context, served),
    ]


def manifests_of(revision: Revision, *, scale: Mapping[str, Any] | None = None) -> list[Manifest]:
    return manifests_for(context_of(revision.deployment), served_revision_of(revision, scale=scale))


def route_of(deployment: Deployment) -> Manifest:
    return http_route.http_route(context_of(deployment), backends_of(deployment))


def backends_of(deployment: Deployment) -> list[http_route.Backend]:
    weight = deployment.candidate_weight
    wanted = [
        (deployment.stable_revision, 100 - weight, 0),
        (deployment.candidate_revision, weight, deployment.candidate_mirror),
    ]
    return [
        http_route.backend_for(
            one.number,
            serving_spec.stored(one.spec),
            share,
            model=one.version.model.name,
            mirror=mirror,
        )
        for one, share, mirror in wanted
        if one is not None
    ]


def yaml_of(revision: Revision) -> str:
    return to_yaml(manifests_of(revision))


def manifests_of_change(change: ChangeRequest) -> list[Manifest]:
    if change.revision is None:
        return []
    return manifests_of(change.revision, scale=change.scale or None)
