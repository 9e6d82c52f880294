"""Run all checks of a request. Pages and the API share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deployments.manifests.domain import http_route
from deployments.manifests.selectors import rendering
from deployments.manifests.selectors.rendered import RenderedRevision
from deployments.manifests.services import defaults
from deployments.models import Deployment, ModelVersion
from deployments.preflight.domain.checks import Check, DeployDraft, Preflight
from deployments.preflight.selectors import quotas
from deployments.preflight.services import (
    caller_checks,
    capacity_checks,
    cluster_checks,
    compiled_models,
    dry_run,
    environment_checks,
    image_weights,
    limits,
    monitor_checks,
    multi_model_checks,
    placement_checks,
    queue_checks,
    quota_checks,
    release_checks,
    revision_checks,
    scaling_checks,
    signing_checks,
    team_address_checks,
    volume_checks,
)
from deployments.preflight.services import cost as preflight_cost
from deployments.preflight.services.cost import ReplacedDeployment, SharesByCluster
from deployments.preflight.services.subject import Subject, subject_of
from deployments.registry.selectors import versions
from deployments.spec.domain import kubernetes_names
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind
from fleet.capacity.selectors import capacity
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.accounts import policy
from portal.accounts.policy import Action, Actor

__all__ = [
    "DeployDraft",
    "RevisionPreflight",
    "check",
    "check_deploy",
    "check_revision",
    "evaluate_revision",
]


@dataclass(frozen=True, slots=True)
class RevisionPreflight(Preflight):
    """A preflight with its rendered revision, for callers that would otherwise render it again."""

    rendered: RenderedRevision


def check(*, actor: Actor, draft: DeployDraft) -> RevisionPreflight:
    """Check a new deployment. Raises NotFound for a version or cluster the actor cannot see."""
    version = versions.get_version(actor=actor, version_id=draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    return check_deploy(draft, version, clusters.get_cluster(draft.cluster_id))


def check_deploy(
    draft: DeployDraft, version: ModelVersion, cluster: ClusterInfo
) -> RevisionPreflight:
    """Run the checks of `check` after the permission, with the version and the cluster of the draft."""
    spec = defaults.complete_spec(draft.spec, version, cluster.serving, cluster.capabilities)
    subject = subject_of(version, cluster, spec, name=draft.name, deployment_id=0, number=1)
    subject = replace(subject, environment=draft.environment)
    problem = kubernetes_names.problem_with(draft.name, namespace=subject.context.namespace)
    if problem:
        check_name = Check("Name", ok=False, detail=problem, fix="Change the name.")
    else:
        check_name = revision_checks.check_name(
            cluster, subject.context, without_id=draft.replaced_deployment_id
        )
    place_checks = environment_checks.check_place(
        environment=draft.environment,
        cluster_id=cluster.id,
        cluster=cluster.name,
        namespace=subject.context.namespace,
        name=draft.name,
    )
    change_checks = environment_checks.check_change(
        environment=draft.environment,
        team_id=version.model.team_id,
        kind=ChangeKind.DEPLOY,
        version=version,
        spec=spec,
        additional=subject.rendered.additional,
    )
    default_checks = scaling_checks.check_default(draft.spec, spec, cluster)
    first = [check_name, *place_checks, *change_checks, *default_checks]
    return _evaluate(subject, first, is_name_valid=not problem)


def check_revision(
    *,
    actor: Actor,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
    overlap_seconds: int = 0,
    baseline: ServingSpec | None = None,
) -> RevisionPreflight:
    """Check a new revision of an existing deployment, or its stable revision in place."""
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    return evaluate_revision(
        deployment=deployment,
        version=version,
        spec=spec,
        number=number,
        is_in_place=is_in_place,
        overlap_seconds=overlap_seconds,
        baseline=baseline,
    )


def evaluate_revision(
    *,
    deployment: Deployment,
    version: ModelVersion,
    spec: ServingSpec,
    number: int,
    is_in_place: bool = False,
    overlap_seconds: int = 0,
    without_change_id: int | None = None,
    revision: RenderedRevision | None = None,
    baseline: ServingSpec | None = None,
) -> RevisionPreflight:
    """Run the checks of `check_revision` without the permission to request a change. `overlap_seconds` is the
    time during which both revisions, and a baseline, run; `revision` is the same one where it is rendered
    already.
    """
    cluster = clusters.get_cluster(deployment.cluster_id)
    subject = subject_of(
        version,
        cluster,
        spec,
        name=deployment.name,
        deployment_id=deployment.pk,
        number=number,
        stable=deployment.stable_revision,
        revision=revision,
    )
    replaced = ReplacedDeployment(deployment.pk, 0 if is_in_place else overlap_seconds)
    return _evaluate(
        replace(subject, replaces=replaced, baseline=baseline, environment=deployment.environment),
        [],
        is_name_valid=True,
        without_deployment_id=deployment.pk if is_in_place else None,
        without_change_id=without_change_id,
    )


def _evaluate(
    subject: Subject,
    first: Sequence[Check],
    *,
    is_name_valid: bool,
    without_deployment_id: int | None = None,
    without_change_id: int | None = None,
) -> RevisionPreflight:
    nodes, running = capacity.read(cluster_id=subject.cluster.id), quotas.list_running(subject.team)
    spec, baseline = subject.spec, subject.baseline
    shares = preflight_cost.find_gpu_shares(nodes.shares, spec)
    cost = preflight_cost.estimate_cost(
        team=subject.team,
        spec=spec,
        offered=nodes.shares,
        running=running,
        shares=SharesByCluster({subject.cluster.id: nodes.shares}),
        replaces=subject.replaces,
        baseline=baseline,
    )
    version_check = revision_checks.check_version(subject.version)
    checks = [
        *first,
        version_check,
        *_check_model(subject, is_ready=bool(version_check.ok)),
        *_check_cluster(subject),
        *_check_gpu(subject, shares),
        quota_checks.check_quota(
            subject.team,
            spec,
            running,
            without_change_id=without_change_id,
            without_deployment_id=without_deployment_id,
            baseline=baseline,
        ),
        preflight_cost.check_budget(cost, is_binding=subject.team.is_budget_binding),
        *capacity_checks.check_all(spec, baseline, subject.cluster, nodes.spaces),
    ]
    checks += _check_dry_run(subject) if is_name_valid and version_check.ok else []
    return RevisionPreflight(
        checks=tuple(checks),
        cost=cost,
        manifests=subject.rendered.to_yaml(),
        evidence_hash=subject.rendered.evidence_digest,
        url=f"{subject.cluster.gateway_url}{http_route.path_prefix(subject.context)}",
        gpu_name=preflight_cost.gpu_names(shares),
        rendered=subject.rendered,
    )


def _check_model(subject: Subject, *, is_ready: bool) -> list[Check]:
    return [
        *revision_checks.check_artifact(subject.version, subject.spec, is_ready=is_ready),
        *cluster_checks.check_access(
            subject.context, subject.rendered.served, subject.version, cluster_id=subject.cluster.id
        ),
        *signing_checks.check_signed(
            (subject.version, *subject.rendered.additional), environment=subject.environment
        ),
        *multi_model_checks.check_models(subject.rendered.additional, subject.spec),
        *revision_checks.check_signature(subject.version, subject.stable),
        # A new deployment has no clients yet.
        *(
            multi_model_checks.check_clients(subject.stable_additional, subject.rendered.additional)
            if subject.stable
            else []
        ),
    ]


def _check_gpu(subject: Subject, shares: Sequence[GpuShare | None]) -> list[Check]:
    return [
        *revision_checks.check_memory(
            subject.version, subject.spec, shares, additional=subject.rendered.additional
        ),
        *compiled_models.check_gpus(
            (subject.version, *subject.rendered.additional),
            [share.gpu_name if share else "" for share in shares],
        ),
        *preflight_cost.check_consolidation(subject.spec, subject.cluster, shares),
    ]


def _check_cluster(subject: Subject) -> list[Check]:
    name, capabilities = subject.cluster.name, subject.cluster.capabilities
    return [
        revision_checks.check_engine(
            subject.version, subject.spec, capabilities, cluster_name=name
        ),
        *cluster_checks.check_runtime(
            subject.context, subject.rendered.served, cluster_id=subject.cluster.id
        ),
        *scaling_checks.check_scaling(subject.spec, subject.cluster),
        *scaling_checks.check_knative(subject.spec, subject.cluster, subject.rendered.manifests),
        *monitor_checks.check_monitor(subject.context, subject.spec, subject.cluster),
        *capacity_checks.check_instance_type(
            subject.spec, cluster_id=subject.cluster.id, pools=capabilities.node_pools or ()
        ),
        *placement_checks.check_rules(subject.spec, subject.cluster),
        revision_checks.check_settings(subject.spec, capabilities, cluster_name=name),
        *limits.check_image(
            subject.spec, rendering.policy_in_force(subject.cluster.serving), cluster=name
        ),
        *image_weights.check(subject.context, subject.rendered.served, capabilities, cluster=name),
        *cluster_checks.check_names(subject.context, subject.spec, cluster_id=subject.cluster.id),
        *team_address_checks.check(
            spec=subject.spec,
            model=subject.version.model.name,
            team_id=subject.team.pk,
            cluster_id=subject.cluster.id,
            deployment_id=subject.context.deployment_id,
        ),
        *caller_checks.check_issuer(subject.spec, subject.cluster),
        *queue_checks.check_queue(subject.context, subject.spec, subject.cluster),
        *volume_checks.check_volume(subject.context, subject.spec, cluster_id=subject.cluster.id),
        *revision_checks.check_tuning(subject.version, subject.spec),
        *release_checks.check(subject.version, subject.spec, subject.rendered.manifests),
    ]


def _check_dry_run(subject: Subject) -> list[Check]:
    served = subject.rendered.served
    backend = http_route.backend_for(served.number, subject.spec, 100, model=served.model_name)
    route = http_route.http_route(subject.context, [backend])
    # An existing deployment has a live route already, so only its workload is applied.
    return dry_run.check(
        cluster_id=subject.cluster.id,
        namespace=subject.context.namespace,
        manifests=subject.rendered.manifests,
        route=None if subject.replaces else route,
    )
