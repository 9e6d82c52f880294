"""From what someone asks for to the row that waits for its approvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from deployments import audit_actions
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.selectors import descriptions
from deployments.changes.services import approvals, notifications, open_requests, plan_figures
from deployments.changes.services.transitions import SUBMITTED_SECONDS
from deployments.manifests.selectors import rendering
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.plans.domain import steps as plan_steps
from deployments.plans.domain.rollout_plan import PlanSettings
from deployments.preflight.domain.checks import Preflight
from deployments.preflight.services import cost, preflight, scaling_checks
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services import timeline
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind, ChangeState
from fleet.capacity.selectors import capacity
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid

# What may be asked of a deployment that is stopped.
_WHILE_STOPPED = (ChangeKind.START, ChangeKind.RETIRE)


@dataclass(frozen=True, slots=True)
class Asked:
    """`revision` is one that exists already; else a new one is made of `version` and `spec`.

    `requested` is the spec before the cluster's defaults were put in; None: nothing was put in.
    """

    kind: ChangeKind
    comment: str
    version: ModelVersion | None = None
    spec: ServingSpec | None = None
    requested: ServingSpec | None = None
    steps: tuple[plan_steps.Step, ...] = ()
    plan: PlanSettings | None = None
    preflight: Preflight | None = None
    revision: Revision | None = None
    scale: dict[str, Any] | None = None
    # Of a roll back: which revision it goes back to.
    restored_number: int | None = None


def changeable(actor: User, deployment_id: int, kind: ChangeKind) -> Deployment:
    deployment = deployment_selectors.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} is retired. Create a new deployment.", code="retired")
    if deployment.is_stopped and kind not in _WHILE_STOPPED:
        raise Conflict(f"{deployment} is stopped. Request a start first.", code="stopped")
    open_change = ChangeRequest.objects.filter(
        deployment=deployment, state__in=change_selectors.OPEN_STATES
    ).first()
    if open_change is not None and not _may_be_ended(deployment, open_change, kind):
        raise _already_open(open_change)
    return deployment


def _may_be_ended(deployment: Deployment, change: ChangeRequest, kind: ChangeKind) -> bool:
    """What has never served is retired also while it still tries to come up."""
    is_start = change.kind in (ChangeKind.DEPLOY, ChangeKind.START)
    is_applying = change.state == ChangeState.APPLYING
    never_served = deployment.first_ready_at is None
    return kind == ChangeKind.RETIRE and is_start and is_applying and never_served


def _already_open(change: ChangeRequest) -> Conflict:
    fix = "withdraw it"
    if change.state == ChangeState.APPLYING:
        is_moved = change.kind in (ChangeKind.CANARY, ChangeKind.ROLL_BACK)
        fix = "abort its rollout" if is_moved else "stop the deployment"
    return Conflict(
        f"The {change} (request {change.pk}) is {change.state}. Let it finish, or {fix} first.",
        code="change_open",
    )


def stable_of(deployment: Deployment) -> Revision:
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} is not serving yet.", code="not_serving")
    return deployment.stable_revision


def check(actor: User, deployment: Deployment, asked: Asked) -> Preflight:
    """What a form shows as well. Of the revision that serves, its GPUs count once."""
    if asked.version is None or asked.spec is None:
        raise Invalid(f"{asked.kind} needs a version and a spec.")
    is_same = asked.revision is not None
    number = asked.revision.number if asked.revision else next_number(deployment)
    found = preflight.check_revision(
        actor=actor,
        deployment=deployment,
        version=asked.version,
        spec=asked.spec,
        number=number,
        is_in_place=is_same,
        overlap_seconds=plan_figures.overlap_seconds(
            deployment, asked.kind, [step.to_json() for step in asked.steps]
        ),
    )
    told = scaling_checks.check_default(
        asked.requested or asked.spec,
        asked.spec,
        clusters.get_cluster(deployment.cluster_id),
        is_in_place=is_same,
    )
    return replace(found, checks=(*told, *found.checks))


def check_and_submit(actor: User, deployment: Deployment, asked: Asked) -> ChangeRequest:
    checked = check(actor, deployment, asked)
    preflight.require_ok(checked)
    return submit_alone(actor, deployment, replace(asked, preflight=checked))


def submit_alone(actor: User, deployment: Deployment, asked: Asked) -> ChangeRequest:
    try:
        with transaction.atomic():
            return submit(actor, deployment, asked)
    except IntegrityError as error:
        raise Conflict(
            f"Someone else requested a change to {deployment} at the same time. Reload the page.",
            code="change_open",
        ) from error


def next_number(deployment: Deployment) -> int:
    return (deployment.revisions.aggregate(highest=Max("number"))["highest"] or 0) + 1


def submit(actor: User, deployment: Deployment, asked: Asked) -> ChangeRequest:
    """Inside a transaction."""
    at = clock.now()
    if asked.kind == ChangeKind.RETIRE:
        open_requests.end_start(actor=actor, deployment=deployment)
    revision = asked.revision or _make_revision(actor, deployment, asked)
    deadline_at = at + timedelta(seconds=SUBMITTED_SECONDS)
    checked = asked.preflight
    change = ChangeRequest(
        deployment=deployment,
        kind=asked.kind,
        state=ChangeState.SUBMITTED,
        requester=actor,
        comment=asked.comment,
        revision=revision,
        steps=[step.to_json() for step in asked.steps],
        plan=asked.plan.to_json() if asked.plan else {},
        scale=asked.scale or {},
        restored_number=asked.restored_number,
        gpu_name=_gpu_name(deployment, revision or deployment.stable_revision),
        checks=[check.to_json() for check in checked.checks] if checked else [],
        cost=checked.cost.to_json() if checked else {},
        created_at=at,
        submitted_at=at,
        deadline_at=deadline_at,
        next_check_at=deadline_at,
    )
    approvals.bind(change)
    change.save()
    _record(actor, change)
    notifications.approval_wanted(change)
    return change


def _make_revision(actor: User, deployment: Deployment, asked: Asked) -> Revision | None:
    if asked.version is None or asked.spec is None:
        return None
    return Revision.objects.create(
        deployment=deployment,
        number=next_number(deployment),
        version=asked.version,
        spec=asked.spec.to_json(),
        created_by=actor,
        created_at=clock.now(),
    )


def _gpu_name(deployment: Deployment, revision: Revision | None) -> str:
    if revision is None:
        return ""
    shares = capacity.list_shares(cluster_id=deployment.cluster_id)
    found = cost.find_gpu_share(shares, rendering.spec_of(revision))
    return found.gpu_name if found else ""


def _record(actor: User, change: ChangeRequest) -> None:
    version = change.revision.version.label if change.revision else ""
    after: dict[str, Any] = {"state": change.state, "kind": change.kind, "version": version}
    if change.scale:
        after["scale"] = change.scale
    trail.record(
        actor=actor,
        action=audit_actions.CHANGE_REQUESTED,
        obj=change,
        label=str(change),
        team_slug=change.team.slug,
        after=after,
        reason=change.comment,
        evidence=change.evidence_hash,
    )
    timeline.note(
        deployment=change.deployment,
        kind="requested",
        message=f"requested {descriptions.of_kind(change.kind, version)}",
        actor=actor,
        revision_number=change.revision.number if change.revision else None,
    )
