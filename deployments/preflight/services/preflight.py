"""Everything that is checked before a request, the same for the page and the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deployments.domain import names
from deployments.domain.manifests import routes
from deployments.domain.manifests.parts import Manifest, Place, Served, to_yaml
from deployments.domain.preflight import Check, DeployDraft, Preflight
from deployments.domain.problems import Rejected
from deployments.domain.specs import ServingSpec
from deployments.models import Deployment, ModelVersion, Revision
from deployments.selectors import plans, quotas
from deployments.services import (
    completing,
    costing,
    dry_run,
    packing_checks,
    preflight_checks,
    preflight_cluster,
)
from fleet.domain.capabilities import Capabilities
from fleet.selectors import capacity, clusters
from fleet.selectors.clusters import ClusterInfo
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Action, Actor
from portal.core.errors import Invalid, NotFound, QuotaExceeded

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
    "Quota": "max_replicas",
    "Server dry-run": "name",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A revision that someone wants, before or after its rows exist."""

    team: Team
    cluster: ClusterInfo
    version: ModelVersion
    spec: ServingSpec
    place: Place
    served: Served
    # In the same processes, as the spec names them.
    packed: Sequence[ModelVersion] = ()
    # What serves now at the same address; None for a new deployment.
    stable: ModelVersion | None = None
    stable_packed: Sequence[ModelVersion] = ()


def check(*, actor: Actor, draft: DeployDraft) -> Preflight:
    """For a new deployment. Raises NotFound for a version or cluster the actor cannot see."""
    version = visible_version(actor, draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    cluster = clusters.get_cluster(draft.cluster_id)
    spec = completing.completed(draft.spec, version, cluster.serving)
    asked = _asked(version, cluster, spec, name=draft.name, deployment_id=0, number=1)
    problem = names.problem_with(draft.name, namespace=asked.place.namespace)
    if problem:
        check_name = Check("Name", ok=False, detail=problem, fix="Change the name.")
    else:
        check_name = preflight_checks.of_name(cluster, asked.place)
    return _answer(asked, [check_name], is_legal=not problem)


def check_revision(
    *,
    actor: Actor,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
) -> Preflight:
    """For another revision of a deployment that exists, or in place: for the one that serves."""
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    return of_revision(
        deployment=deployment, version=version, spec=spec, number=number, is_in_place=is_in_place
    )


def of_revision(
    *,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
    without_change_id: int | None = None,
) -> Preflight:
    """As `check_revision`, for whoever may see the deployment."""
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
    replaced = deployment.pk if is_in_place else None
    return _answer(
        asked,
        [],
        is_legal=True,
        without_deployment_id=replaced,
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


def as_invalid(error: Rejected) -> Invalid:
    return Invalid(error.message, fields=error.fields)


def visible_version(actor: Actor, version_id: int) -> ModelVersion:
    rows = ModelVersion.objects.select_related("model__team")
    found = rows.filter(pk=version_id, model__team__in=policy.visible_teams(actor)).first()
    if found is None:
        raise NotFound(f"There is no version {version_id}, or you are not in its team.")
    return found


def check_quota(
    team: Team,
    spec: ServingSpec,
    *,
    without_change_id: int | None = None,
    without_deployment_id: int | None = None,
) -> Check:
    """Counts what runs at full scale-out and what is approved but not running yet."""
    committed = quotas.committed_gpus(
        team,
        without_change_id=without_change_id,
        without_deployment_id=without_deployment_id,
    )
    total = committed + spec.most_gpus
    detail = f"{total} of {team.quota_gpus} GPUs of {team.slug} after this."
    if total <= team.quota_gpus:
        return Check("Quota", ok=True, detail=detail)
    left = max(0, team.quota_gpus - committed)
    fitting = left // spec.gpus
    lower = f"lower the most replicas to {fitting}, " if fitting >= spec.min_replicas else ""
    gpus = "1 GPU is" if left == 1 else f"{left or 'No'} GPUs are"
    fix = f"{gpus} left: {lower}retire something, or ask a platform admin for more."
    return Check("Quota", ok=False, detail=detail, fix=fix)


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
    place = plans.place_for(
        team=team.slug,
        name=name,
        deployment_id=deployment_id,
        cluster=cluster,
        policy=cluster.serving,
    )
    try:
        packed = plans.packed_of(version, spec)
        served = plans.served_for(number=number, version=version, spec=spec)
    except Rejected as error:
        raise as_invalid(error) from error
    asked = _Asked(team, cluster, version, spec, place, served, packed)
    if stable is None:
        return asked
    before = plans.packed_of(stable.version, plans.spec_of(stable))
    return replace(asked, stable=stable.version, stable_packed=before)


def _answer(
    asked: _Asked,
    first: Sequence[Check],
    *,
    is_legal: bool,
    without_deployment_id: int | None = None,
    without_change_id: int | None = None,
) -> Preflight:
    manifests = plans.manifests_for(asked.place, asked.served)
    shares = capacity.list_shares(cluster_id=asked.cluster.id)
    cost = costing.cost_of(
        team=asked.team,
        spec=asked.spec,
        shares=shares,
        without_deployment_id=without_deployment_id,
    )
    version_check = preflight_checks.of_version(asked.version)
    quota = check_quota(
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
        preflight_checks.of_memory(asked.version, asked.spec, shares, packed=asked.packed),
        quota,
        costing.check_budget(cost),
        preflight_checks.of_capacity(asked.spec, _offered(asked), cluster_id=asked.cluster.id),
    ]
    if is_legal and version_check.ok:
        checks.append(_check_dry_run(asked, manifests))
    return Preflight(
        checks=tuple(checks),
        cost=cost,
        manifests=to_yaml(manifests),
        evidence_hash=plans.evidence_for_draft(asked.place, asked.served, asked.version),
        url=f"{asked.cluster.gateway_url}{routes.path_prefix(asked.place)}",
    )


def _of_model(asked: _Asked, *, is_ready: bool) -> list[Check]:
    return [
        *preflight_checks.of_artifact(asked.version, asked.spec, is_ready=is_ready),
        *preflight_cluster.of_access(
            asked.place, asked.served, asked.version, cluster_id=asked.cluster.id
        ),
        *packing_checks.of_packed(asked.packed, asked.spec),
        *preflight_checks.of_signature(asked.version, asked.stable),
        # Nothing is called at a new deployment's address yet.
        *(packing_checks.of_clients(asked.stable_packed, asked.packed) if asked.stable else []),
    ]


def _of_cluster(asked: _Asked) -> list[Check]:
    name, offered = asked.cluster.name, _offered(asked)
    return [
        preflight_checks.of_engine(asked.version, asked.spec, offered, where=name),
        *preflight_cluster.of_runtime(asked.place, asked.served, cluster_id=asked.cluster.id),
        preflight_checks.of_settings(asked.spec, offered, where=name),
        *preflight_cluster.of_names(asked.place, asked.spec, cluster_id=asked.cluster.id),
        *preflight_checks.of_tuning(asked.version, asked.spec),
    ]


def _offered(asked: _Asked) -> Capabilities:
    return Capabilities.from_json(asked.cluster.capabilities)


def _check_dry_run(asked: _Asked, manifests: Sequence[Manifest]) -> Check:
    backend = routes.backend_for(asked.served.number, asked.spec, 100)
    route = routes.http_route(asked.place, [backend])
    # The live route of a deployment that exists is not this one; only its own workload is asked.
    extra = [route] if asked.place.deployment_id == 0 else []
    return dry_run.check(
        cluster_id=asked.cluster.id,
        namespace=asked.place.namespace,
        manifests=[*manifests, *extra],
    )
