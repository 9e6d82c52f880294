"""Turns a requested change of a deployment into the row that waits for its approvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Max

from deployments.approvals.selectors import approvals
from deployments.changes.selectors import changes, deployment_evidence
from deployments.changes.selectors.subjects import subject_of
from deployments.changes.services import decisions, new_request, open_requests, plan_figures
from deployments.manifests.selectors import baselines, rendering
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.selectors import plans
from deployments.preflight.services import (
    cost,
    environment_checks,
    preflight,
    refusals,
    scaling_checks,
)
from deployments.preflight.services.preflight import RevisionPreflight
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind, ChangeState
from fleet.capacity.selectors import capacity
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid

# They run the stable revision, so what it takes is not counted twice.
IN_PLACE = (ChangeKind.SCALE, ChangeKind.START)
# What can be requested of a stopped deployment.
_WHILE_STOPPED = (ChangeKind.START, ChangeKind.RETIRE)


@dataclass(frozen=True, slots=True)
class ChangeSpec:
    """A requested change. Without an existing `revision` one is made of `version` and `spec`.

    `stated_spec` is the spec before the cluster's defaults were added, None if none were.
    """

    kind: ChangeKind
    comment: str
    version: ModelVersion | None = None
    spec: ServingSpec | None = None
    stated_spec: ServingSpec | None = None
    plan: RolloutPlan | None = None
    preflight: RevisionPreflight | None = None
    revision: Revision | None = None
    scale: dict[str, Any] | None = None
    # The number of the revision to which a roll back returns.
    restored_number: int | None = None
    # The request that this one replaces.
    replaces: ChangeRequest | None = None


def changeable(actor: User, deployment_id: int, kind: ChangeKind) -> Deployment:
    deployment = deployment_selectors.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} is retired. Create a new deployment.", code="retired")
    if deployment.is_stopped and kind not in _WHILE_STOPPED:
        raise Conflict(f"{deployment} is stopped. Request a start first.", code="stopped")
    open_change = changes.open_request_of(deployment)
    if open_change is not None and not _may_be_ended(deployment, open_change, kind):
        raise new_request.already_open(open_change)
    return deployment


def _may_be_ended(deployment: Deployment, change: ChangeRequest, kind: ChangeKind) -> bool:
    """Whether the open request is a start that a retirement may end, because the deployment never served."""
    is_start = change.kind in (ChangeKind.DEPLOY, ChangeKind.START)
    is_applying = change.state == ChangeState.APPLYING
    never_served = deployment.first_ready_at is None
    return kind == ChangeKind.RETIRE and is_start and is_applying and never_served


def stable_of(deployment: Deployment) -> Revision:
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} is not serving yet.", code="not_serving")
    return deployment.stable_revision


def check(actor: User, deployment: Deployment, requested: ChangeSpec) -> RevisionPreflight:
    """Run the checks that a form shows too. GPUs of the stable revision count once."""
    if requested.version is None or requested.spec is None:
        raise Invalid(f"{requested.kind} needs a version and a spec.")
    is_in_place = requested.kind in IN_PLACE
    number = requested.revision.number if requested.revision else next_number(deployment)
    checked = preflight.check_revision(
        actor=actor,
        deployment=deployment,
        version=requested.version,
        spec=requested.spec,
        number=number,
        is_in_place=is_in_place,
        overlap_seconds=plan_figures.overlap_seconds(deployment, requested.kind, requested.plan),
        baseline=baselines.spec_of(deployment, requested.plan, requested.spec),
    )
    default_scaling = scaling_checks.check_default(
        requested.stated_spec or requested.spec,
        requested.spec,
        clusters.get_cluster(deployment.cluster_id),
        is_in_place=is_in_place,
    )
    entered = environment_checks.check_change(
        environment=deployment.environment,
        team_id=deployment.team_id,
        kind=requested.kind,
        version=requested.version,
        spec=requested.spec,
        additional=rendering.additional_versions(requested.version, requested.spec),
        current=rendering.stable_spec_of(deployment),
    )
    return replace(checked, checks=(*entered, *default_scaling, *checked.checks))


def check_and_submit(actor: User, deployment: Deployment, requested: ChangeSpec) -> ChangeRequest:
    checked = check(actor, deployment, requested)
    refusals.require_ok(checked)
    return submit_alone(actor, deployment, replace(requested, preflight=checked))


def submit_alone(actor: User, deployment: Deployment, requested: ChangeSpec) -> ChangeRequest:
    with new_request.only_one(deployment):
        return submit(actor, deployment, requested)


def next_number(deployment: Deployment) -> int:
    return (deployment.revisions.aggregate(highest=Max("number"))["highest"] or 0) + 1


def submit(actor: User, deployment: Deployment, requested: ChangeSpec) -> ChangeRequest:
    """Store a requested change with its revision, and submit it. Call inside a transaction."""
    if requested.kind == ChangeKind.RETIRE:
        open_requests.end_start(actor=actor, deployment=deployment)
    revision = requested.revision or _make_revision(actor, deployment, requested)
    checked = requested.preflight
    change = ChangeRequest(
        deployment=deployment,
        kind=requested.kind,
        comment=requested.comment,
        revision=revision,
        **(plans.columns_of(requested.plan) if requested.plan else {}),
        scale=requested.scale or {},
        restored_number=requested.restored_number,
        replaces=requested.replaces,
        gpu_name=checked.gpu_name if checked else _gpu_name(deployment, revision),
        checks=[check.to_json() for check in checked.checks] if checked else [],
        cost=checked.cost.to_json() if checked else {},
    )
    version = revision.version.label if revision else ""
    after = {"version": version, **({"scale": change.scale} if change.scale else {})}
    rendered = deployment_evidence.reuse_preflight(change, checked.rendered) if checked else None
    new_request.submit(actor=actor, change=change, after=after, rendered=rendered)
    label = f"{change.noun} of {version}" if version else change.noun
    subject_of(change).note(change, kind="requested", message=f"{label} requested", actor=actor)
    status = approvals.status_at_request(change)
    if status.is_satisfied:
        decisions.run_as_approved_before(actor, change, reason=status.description)
    return change


def _make_revision(actor: User, deployment: Deployment, requested: ChangeSpec) -> Revision | None:
    if requested.version is None or requested.spec is None:
        return None
    return Revision.objects.create(
        deployment=deployment,
        number=next_number(deployment),
        version=requested.version,
        spec=requested.spec.to_json(),
        created_by=actor,
        created_at=clock.now(),
    )


def _gpu_name(deployment: Deployment, revision: Revision | None) -> str:
    """Return the GPU name of a request that needs no checks. Empty without a revision."""
    revision = revision or deployment.stable_revision
    if revision is None:
        return ""
    spec = rendering.spec_of(revision)
    shares = capacity.list_shares(
        cluster_id=deployment.cluster_id, instance_types=spec.instance_types
    )
    return cost.gpu_names(cost.find_gpu_shares(shares, spec))
