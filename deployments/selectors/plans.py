"""From rows to manifests: what the portal writes to a cluster for a deployment and its revisions."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from deployments.domain import specs
from deployments.domain.manifests import revision as revision_manifests
from deployments.domain.manifests import routes
from deployments.domain.manifests.parts import Manifest, Place, Served, digest_of, to_yaml
from deployments.domain.specs import ServingSpec
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision

_LOCAL = "local"


def place_of(deployment: Deployment) -> Place:
    return place_for(
        team=deployment.team.slug,
        name=deployment.name,
        deployment_id=deployment.pk,
        cluster=deployment.cluster,
    )


def place_for(*, team: str, name: str, deployment_id: int, cluster: Any) -> Place:
    """`cluster` is fleet's row or its ClusterInfo: kind, gateway_namespace and gateway_name are read."""
    return Place(
        team=team,
        namespace=team,
        deployment=name,
        deployment_id=deployment_id,
        is_local_cluster=cluster.kind == _LOCAL,
        gateway_namespace=cluster.gateway_namespace,
        gateway_name=cluster.gateway_name,
        triton_image=settings.SLIPWAY_TRITON_IMAGE,
        storage_image=settings.SLIPWAY_STORAGE_INITIALIZER_IMAGE,
        s3_endpoint=settings.SLIPWAY_S3_ENDPOINT_URL,
        s3_region=settings.SLIPWAY_S3_REGION,
        role_arn=settings.SLIPWAY_SERVING_ROLE_ARN,
    )


def served_of(revision: Revision) -> Served:
    return served_for(
        number=revision.number, version=revision.version, spec=specs.from_json(revision.spec)
    )


def served_for(*, number: int, version: ModelVersion, spec: ServingSpec) -> Served:
    return Served(
        number=number,
        model_name=version.model.name,
        version_label=version.label,
        sha256=version.sha256,
        storage_uri=version.storage_uri,
        spec=spec,
    )


def manifests_for(place: Place, served: Served) -> list[Manifest]:
    """Everything of a revision except the Secret, whose content is nobody's to see."""
    return [
        *revision_manifests.shared(place, served),
        *revision_manifests.own(place, served),
    ]


def manifests_of(revision: Revision) -> list[Manifest]:
    return manifests_for(place_of(revision.deployment), served_of(revision))


def route_of(deployment: Deployment) -> Manifest:
    return routes.http_route(place_of(deployment), backends_of(deployment))


def backends_of(deployment: Deployment) -> list[routes.Backend]:
    weight = deployment.candidate_weight
    wanted = [
        (deployment.stable_revision, 100 - weight),
        (deployment.candidate_revision, weight),
    ]
    return [
        routes.Backend(number=revision.number, engine=revision.spec["engine"], weight=share)
        for revision, share in wanted
        if revision is not None
    ]


def yaml_of(revision: Revision) -> str:
    return to_yaml(manifests_of(revision))


def yaml_of_change(change: ChangeRequest) -> str:
    """What approving would write; empty for a retirement, which only removes."""
    return "" if change.revision is None else yaml_of(change.revision)


def evidence_of(change: ChangeRequest) -> str:
    """SHA-256 over all that an approval binds to, as it is now."""
    deployment, revision = change.deployment, change.revision
    return digest_of(
        {
            "kind": change.kind,
            "deployment": [deployment.cluster_id, deployment.namespace, deployment.name],
            "stable": deployment.stable_revision_id,
            "manifests": [] if revision is None else manifests_of(revision),
            "version": [] if revision is None else _identity_of(revision.version),
            "steps": change.steps,
            # Not in requests from before there were plans: what was approved then still holds.
            **({"plan": change.plan} if change.plan else {}),
        }
    )


def evidence_for_draft(place: Place, served: Served, version: ModelVersion) -> str:
    """What a form shows before there is a change request: same content, no deployment row yet."""
    return digest_of({"manifests": manifests_for(place, served), "version": _identity_of(version)})


def _identity_of(version: ModelVersion) -> list[str]:
    return [version.bucket, version.key, version.s3_version_id, version.sha256]
