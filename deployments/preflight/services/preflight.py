"""Everything that is checked before a request, the same for the page and the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deployments.errors import Rejected
from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision, to_yaml
from deployments.manifests.selectors import draft_digest, rendering
from deployments.manifests.services import defaults
from deployments.models import Deployment, ModelVersion, Revision
from deployments.preflight.domain.checks import Check, DeployDraft, Preflight
from deployments.preflight.services import (
    capacity_checks,
    cluster_checks,
    dry_run,
    limits,
    packing_checks,
    quota_checks,
    revision_checks,
    scaling_checks,
)
from deployments.preflight.services import cost as preflight_cost
from deployments.preflight.services.cost import Replaced
from deployments.registry.selectors.versions import visible_version
from deployments.rejections import as_invalid
from deployments.spec.domain import kubernetes_names
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import capacity
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Action, Actor
from portal.core.errors import Invalid, QuotaExceeded

__all__ = ["DeployDraft", "check", "check_revision", "of_revision", "require_all", "require_ok"]

# Which form field a refused check belongs to.
_FIELDS = {
    "Name": "name",
    "Version": "version_id",
    "Artifact": "version_id",
    "Signature": "version_id",
    "Engine": "engine",
    "Batching": "batching",
    packing_checks.NAME: "packed",
    "GPU memory": "gpu_resource",
    limits.TRANSFORMER: "components.transformer_image",
    limits.EXPLAINER: "components.explainer_image",
    limits.WEIGHTS: "llm.artifact",
    limits.PRIORITY: "placement.priority_class",
    "Quota": "max_replicas",
    scaling_checks.NAME: "scaling",
    capacity_checks.INSTANCE_TYPE: "instance_type",
    capacity_checks.CAPACITY: "instance_type",
    "Server dry-run": "name",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A revision that someone wants, before or after its rows exist."""

    team: Team
    cluster: ClusterInfo
    version: ModelVersion
    spec: ServingSpec
    context: ManifestContext
    served: ServedRevision
    # In the same processes, as the spec names them.
    packed: Sequence[ModelVersion] = ()
    # What serves now at the same address; None for a new deployment.
    stable: ModelVersion | None = None
    stable_packed: Sequence[ModelVersion] = ()
    replaces: Replaced | None = None


def check(*, actor: Actor, draft: DeployDraft) -> Preflight:
    """For a new deployment. Raises NotFound for a version or cluster the actor cannot see."""
    version = visible_version(actor, draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    cluster = clusters.get_cluster(draft.cluster_id)
    spec = defaults.completed(draft.spec, version, cluster.serving, cluster.capabilities)
    asked = _asked(version, cluster, spec, name=draft.name, deployment_id=0, number=1)
    problem = kubernetes_names.problem_with(draft.name, namespace=asked.context.namespace)
    if problem:
        check_name = Check("Name", ok=False, detail=problem, fix="Change the name.")
    else:
        check_name = revision_checks.of_name(cluster, asked.context)
    told = scaling_checks.of_default(draft.spec, spec, cluster)
    return _answer(asked, [check_name, *told], is_legal=not problem)


def check_revision(
    *,
    actor: Actor,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
    overlap_seconds: int = 0,
) -> Preflight:
    """For another revision of a deployment that exists, or in place: for the one that serves."""
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    return of_revision(
        deployment=deployment,
        version=version,
        spec=spec,
        number=number,
        is_in_place=is_in_place,
        overlap_seconds=overlap_seconds,
    )


def of_revision(
    *,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
    overlap_seconds: int = 0,
    without_change_id: int | None = None,
) -> Preflight:
    """As `check_revision`, for whoever may see the deployment. `overlap_seconds` is how long a
    rollout to it takes, while which both revisions run.
    """
    cluster = clusters.get_cluster(deployment.cluster_id)
    asked = _asked(
        version,
        cluster,
        spec,
        name=deployment.name,
        deployment_id=deployment.pk,
        number=number,
        stable=deployment.stable_revision,
    )
    replaced = Replaced(deployment.pk, 0 if is_in_place else overlap_seconds)
    return _answer(
        replace(asked, replaces=replaced),
        [],
        is_legal=True,
        without_deployment_id=deployment.pk if is_in_place else None,
        without_change_id=without_change_id,
    )


def require_ok(preflight: Preflight) -> None:
    require_all(preflight.checks)


def require_all(checks: Iterable[Check]) -> None:
    """Raise Invalid or QuotaExceeded with every refusal and its fix."""
    if not (refusals := [check for check in checks if check.is_refusal]):
        return
    fields = {
        _FIELDS[check.name]: f"{check.detail} {check.fix}".strip()
        for check in reversed(refusals)
        if check.name in _FIELDS
    }
    words = " ".join(f"{check.name}: {check.detail} {check.fix}".strip() for check in refusals)
    if refusals[0].name == "Quota":
        raise QuotaExceeded(words, fields=fields)
    code = "version_not_ready" if refusals[0].name == "Version" else Invalid.code
    raise Invalid(words, fields=fields, code=code)


def _asked(
    version: ModelVersion,
    cluster: ClusterInfo,
    spec: ServingSpec,
    *,
    name: str,
    deployment_id: int,
    number: int,
    stable: Revision | None = None,
) -> _Asked:
    team = version.model.team
    context = rendering.context_for(
        team=team.slug,
        name=name,
        deployment_id=deployment_id,
        cluster=cluster,
        policy=cluster.serving,
    )
    try:
        packed = rendering.packed_of(version, spec)
        served = rendering.served_revision_for(number=number, version=version, spec=spec)
    except Rejected as error:
        raise as_invalid(error) from error
    asked = _Asked(team, cluster, version, spec, context, served, packed)
    if stable is None:
        return asked
    before = rendering.packed_of(stable.version, rendering.spec_of(stable))
    return replace(asked, stable=stable.version, stable_packed=before)


def _answer(
    asked: _Asked,
    first: Sequence[Check],
    *,
    is_legal: bool,
    without_deployment_id: int | None = None,
    without_change_id: int | None = None,
) -> Preflight:
    manifests = rendering.manifests_for(asked.context, asked.served)
    shares = capacity.list_shares(cluster_id=asked.cluster.id)
    cost = preflight_cost.cost_of(
        team=asked.team,
        spec=asked.spec,
        shares=shares,
        replaces=asked.replaces,
    )
    version_check = revision_checks.of_version(asked.version)
    quota = quota_checks.check_quota(
        asked.team,
        asked.spec,
        without_change_id=without_change_id,
        without_deployment_id=without_deployment_id,
    )
    checks = [
        *first,
        version_check,
        *_of_model(asked, is_ready=bool(version_check.ok)),
        *_of_cluster(asked),
        revision_checks.of_memory(asked.version, asked.spec, shares, packed=asked.packed),
        quota,
        preflight_cost.check_budget(cost),
        capacity_checks.of_capacity(asked.spec, _offered(asked), cluster_id=asked.cluster.id),
    ]
    if is_legal and version_check.ok:
        checks.append(_check_dry_run(asked, manifests))
    return Preflight(
        checks=tuple(checks),
        cost=cost,
        manifests=to_yaml(manifests),
        evidence_hash=draft_digest.for_draft(asked.context, asked.served, asked.version),
        url=f"{asked.cluster.gateway_url}{http_route.path_prefix(asked.context)}",
    )


def _of_model(asked: _Asked, *, is_ready: bool) -> list[Check]:
    return [
        *revision_checks.of_artifact(asked.version, asked.spec, is_ready=is_ready),
        *cluster_checks.of_access(
            asked.context, asked.served, asked.version, cluster_id=asked.cluster.id
        ),
        *packing_checks.of_packed(asked.packed, asked.spec),
        *revision_checks.of_signature(asked.version, asked.stable),
        # Nothing is called at a new deployment's address yet.
        *(packing_checks.of_clients(asked.stable_packed, asked.packed) if asked.stable else []),
    ]


def _of_cluster(asked: _Asked) -> list[Check]:
    name, offered = asked.cluster.name, _offered(asked)
    return [
        revision_checks.of_engine(asked.version, asked.spec, offered, where=name),
        *cluster_checks.of_runtime(asked.context, asked.served, cluster_id=asked.cluster.id),
        *scaling_checks.of_scaling(asked.spec, asked.cluster),
        *capacity_checks.of_instance_type(asked.spec, cluster_id=asked.cluster.id),
        revision_checks.of_settings(asked.spec, offered, where=name),
        *limits.of_spec(asked.spec, rendering.policy_in_force(asked.cluster.serving), where=name),
        *cluster_checks.of_names(asked.context, asked.spec, cluster_id=asked.cluster.id),
        *revision_checks.of_tuning(asked.version, asked.spec),
    ]


def _offered(asked: _Asked) -> Capabilities:
    return Capabilities.from_json(asked.cluster.capabilities)


def _check_dry_run(asked: _Asked, manifests: Sequence[Manifest]) -> Check:
    served = asked.served
    backend = http_route.backend_for(served.number, asked.spec, 100, model=served.model_name)
    route = http_route.http_route(asked.context, [backend])
    # The live route of a deployment that exists is not this one; only its own workload is asked.
    extra = [route] if asked.context.deployment_id == 0 else []
    return dry_run.check(
        cluster_id=asked.cluster.id,
        namespace=asked.context.namespace,
        manifests=[*manifests, *extra],
    )
