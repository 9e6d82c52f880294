"""From rows to manifests: what the portal writes to a cluster for a deployment and its revisions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from deployments.domain import layout, scales, serving_files, signatures, specs
from deployments.domain.approvals import Requirement
from deployments.domain.manifests import revision as revision_manifests
from deployments.domain.manifests import routes
from deployments.domain.manifests.parts import (
    Manifest,
    PackedModel,
    Place,
    Served,
    digest_of,
    to_yaml,
)
from deployments.domain.problems import Rejected
from deployments.domain.serving_files import PackedFiles, ServingFiles
from deployments.domain.sizing import MIB
from deployments.domain.spec_engines import LLM_SERVICE, ONNX_ENGINES, TRITON_VLLM
from deployments.domain.specs import Packed, ServingSpec
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.selectors import approvals
from fleet.domain.serving_policies import ServingPolicy

_LOCAL = "local"


def place_of(deployment: Deployment) -> Place:
    return place_for(
        team=deployment.team.slug,
        name=deployment.name,
        deployment_id=deployment.pk,
        cluster=deployment.cluster,
        policy=policy_of(deployment),
    )


def usual_policy() -> ServingPolicy:
    """What holds where a cluster's own policy leaves something empty."""
    return ServingPolicy(
        triton_image=settings.SLIPWAY_TRITON_IMAGE,
        triton_vllm_image=settings.SLIPWAY_TRITON_VLLM_IMAGE,
        vllm_image=settings.SLIPWAY_VLLM_IMAGE,
        storage_image=settings.SLIPWAY_STORAGE_INITIALIZER_IMAGE,
        role_arn=settings.SLIPWAY_SERVING_ROLE_ARN,
        prometheus_url=settings.SLIPWAY_SCALING_PROMETHEUS_URL,
        cache_node_group=settings.SLIPWAY_MODEL_CACHE_NODE_GROUP,
    )


@functools.lru_cache(maxsize=256)
def _filled(policy: ServingPolicy, usual: ServingPolicy) -> ServingPolicy:
    return policy.over(usual)


def policy_of(deployment: Deployment) -> ServingPolicy:
    return ServingPolicy.from_json(deployment.cluster.serving)


def place_for(
    *, team: str, name: str, deployment_id: int, cluster: Any, policy: ServingPolicy
) -> Place:
    """`cluster` is fleet's row or its ClusterInfo: kind, gateway_namespace and gateway_name are
    read. What its policy leaves empty is as the portal's settings say.
    """
    used = _filled(policy, usual_policy())
    return Place(
        team=team,
        namespace=team,
        deployment=name,
        deployment_id=deployment_id,
        is_local_cluster=cluster.kind == _LOCAL,
        gateway_namespace=cluster.gateway_namespace,
        gateway_name=cluster.gateway_name,
        triton_image=used.triton_image,
        storage_image=used.storage_image,
        s3_endpoint=settings.SLIPWAY_S3_ENDPOINT_URL,
        s3_region=settings.SLIPWAY_S3_REGION,
        role_arn=used.role_arn,
        storage_secret=used.storage_secret,
        vllm_image=used.vllm_image,
        prometheus_url=used.prometheus_url,
        cache_node_group=used.cache_node_group,
    )


def spec_of(revision: Revision, *, scale: Mapping[str, int] | None = None) -> ServingSpec:
    """With the replicas that were approved since the revision was made, or those of `scale`."""
    wanted = revision.deployment.scale if scale is None else scale
    return scales.scaled(specs.stored(revision.spec), number=revision.number, scale=wanted)


def spec_of_change(change: ChangeRequest) -> ServingSpec | None:
    """What would run, and with how many replicas; None for a retirement."""
    if change.revision is None:
        return None
    return spec_of(change.revision, scale=change.scale or None)


def served_of(revision: Revision, *, scale: Mapping[str, int] | None = None) -> Served:
    spec = spec_of(revision, scale=scale)
    return served_for(number=revision.number, version=revision.version, spec=spec)


def served_for(*, number: int, version: ModelVersion, spec: ServingSpec) -> Served:
    packed = packed_of(version, spec)
    files = _files(version, spec, packed)
    return Served(
        number=number,
        model_name=version.model.name,
        version_label=version.label,
        sha256=version.sha256,
        storage_uri=_storage_uri(version, files),
        spec=spec,
        size_mib=_size_mib(version),
        config_name=files.config_name,
        packed=tuple(_packed_model(one) for one in packed),
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


def _packed_model(version: ModelVersion) -> PackedModel:
    name = version.model.name
    directory = layout.model_directory(version.repository_prefix, name)
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
    used = _filled(policy, usual_policy())
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
    return serving_files.plan(
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


def manifests_for(place: Place, served: Served) -> list[Manifest]:
    """Everything of a revision except the Secret, whose content is nobody's to see."""
    return [
        *revision_manifests.shared(place, served),
        *revision_manifests.own(place, served),
    ]


def manifests_of(revision: Revision, *, scale: Mapping[str, int] | None = None) -> list[Manifest]:
    return manifests_for(place_of(revision.deployment), served_of(revision, scale=scale))


def route_of(deployment: Deployment) -> Manifest:
    return routes.http_route(place_of(deployment), backends_of(deployment))


def backends_of(deployment: Deployment) -> list[routes.Backend]:
    weight = deployment.candidate_weight
    wanted = [
        (deployment.stable_revision, 100 - weight, 0),
        (deployment.candidate_revision, weight, deployment.candidate_mirror),
    ]
    return [
        routes.backend_for(revision.number, specs.stored(revision.spec), share, mirror=mirror)
        for revision, share, mirror in wanted
        if revision is not None
    ]


def yaml_of(revision: Revision) -> str:
    return to_yaml(manifests_of(revision))


def yaml_of_change(change: ChangeRequest) -> str:
    """What approving would write; empty for a retirement, which only removes."""
    return "" if change.revision is None else to_yaml(_manifests_of_change(change))


def evidence_of(change: ChangeRequest, *, rules: Sequence[Requirement] | None = None) -> str:
    """SHA-256 over all that an approval binds to, as it is now. The rules are part of it: whoever
    approved under one rule has not approved under another.
    """
    asked = approvals.required_now(change) if rules is None else rules
    deployment, revision = change.deployment, change.revision
    return digest_of(
        {
            "kind": change.kind,
            "deployment": [deployment.cluster_id, deployment.namespace, deployment.name],
            "stable": deployment.stable_revision_id,
            "environment": deployment.environment,
            "is_stopped": deployment.is_stopped,
            "scale": [deployment.scale, change.scale],
            "rules": [_terms_of(rule) for rule in asked],
            "manifests": _manifests_of_change(change),
            "version": [] if revision is None else _identity_of(revision.version),
            "steps": change.steps,
            # Not in requests from before there were plans: what was approved then still holds.
            **({"plan": change.plan} if change.plan else {}),
        }
    )


def _terms_of(rule: Requirement) -> dict[str, Any]:
    """Without the words, which may be put better any time."""
    return {name: value for name, value in rule.to_json().items() if name != "why"}


def _manifests_of_change(change: ChangeRequest) -> list[Manifest]:
    if change.revision is None:
        return []
    return manifests_of(change.revision, scale=change.scale or None)


def evidence_for_draft(place: Place, served: Served, version: ModelVersion) -> str:
    """What a form shows before there is a change request: same content, no deployment row yet."""
    return digest_of({"manifests": manifests_for(place, served), "version": _identity_of(version)})


def _identity_of(version: ModelVersion) -> list[str]:
    if version.source_uri:
        return [version.source_uri]
    return [version.bucket, version.key, version.s3_version_id, version.sha256]
