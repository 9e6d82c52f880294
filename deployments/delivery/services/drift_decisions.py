"""Decisions about drift: revert it, or request it as a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from deployments import audit_actions, rejections
from deployments.changes.selectors import safeguards as safeguard_requests
from deployments.changes.services import requests, safeguards
from deployments.changes.services.safeguards import Safeguard
from deployments.delivery.domain import adoption
from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.domain.edits import Edit
from deployments.manifests.selectors import rendering
from deployments.manifests.services import defaults
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.serving.selectors import deployments
from deployments.serving.services import timeline
from deployments.spec.domain import replicas
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import DriftPolicy
from fleet.clusters.domain.capabilities import Capabilities
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.definitions import Rejected
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake

_STEPS = [{"weight": 50, "soak_seconds": 300, "min_requests": 0}]


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """The drift of a deployment for people. `is_adoptable` means that edits can be requested as a change; those in
    `not_adoptable` cannot.
    """

    policy: DriftPolicy
    drift: Drift
    is_revert_requested: bool
    is_adoptable: bool
    not_adoptable: Sequence[Edit]
    # Who wants to hold drift, and which approvals that needs; empty without such a request.
    hold_requested: str = ""

    @property
    def is_pending(self) -> bool:
        return self.drift.outcome == DriftOutcome.PENDING and not self.is_revert_requested


def view_of(deployment: Deployment) -> DriftSummary:
    drift = Drift.from_json(deployment.drift)
    stable = deployment.stable_revision
    not_adoptable: Sequence[Edit] = drift.edits
    is_adoptable = False
    if stable is not None:
        spec = rendering.spec_of(stable)
        try:
            adopted = adoption.adopt(spec, _edits_of(stable, drift))
        except Rejected:
            adopted = adoption.Adoption(spec, drift.edits)
        requested = defaults.autoscaled_in_place(
            adopted.spec,
            rendering.policy_of(deployment),
            Capabilities.from_json(deployment.cluster.capabilities),
        )
        not_adoptable, is_adoptable = adopted.unsupported, requested != spec
    return DriftSummary(
        policy=DriftPolicy(deployment.drift_policy),
        drift=drift,
        is_revert_requested=deployment.is_revert_requested,
        is_adoptable=is_adoptable,
        not_adoptable=not_adoptable,
        hold_requested=safeguard_requests.describe_open(deployment, Safeguard.DRIFT),
    )


def set_policy(*, actor: User, deployment_id: int, to: DriftPolicy) -> Deployment:
    """Set whether later drift is reverted at once, or pending until someone decides. Holding it waits for
    approvals, as a change does.
    """
    deployment = _changeable(actor, deployment_id)
    old = deployment.drift_policy
    if old == to:
        if to == DriftPolicy.RE_APPLY:
            safeguards.withdraw(deployment, Safeguard.DRIFT)
        return deployment
    message = {
        DriftPolicy.RE_APPLY: "drift is reverted automatically from now on",
        DriftPolicy.HOLD: "drift is held for review from now on",
    }[to]
    with transaction.atomic():
        if to == DriftPolicy.HOLD and not safeguards.may_remove(actor, deployment, Safeguard.DRIFT):
            return deployment
        Deployment.objects.filter(pk=deployment.pk).update(
            drift_policy=to, next_check_at=clock.now()
        )
        before, after = {"policy": old}, {"policy": to}
        _note(actor, deployment, audit_actions.DRIFT_POLICY, message, before, after)
        wake("deployments.reconcile_deployment", deployment.pk)
    deployment.drift_policy = to
    return deployment


def re_apply(*, actor: User, deployment_id: int) -> Deployment:
    """Revert pending drift: apply the approved manifests again."""
    deployment = _changeable(actor, deployment_id)
    _require_pending(deployment)
    message = "reverted drift to the approved manifests"
    with transaction.atomic():
        Deployment.objects.filter(pk=deployment.pk).update(
            is_revert_requested=True, next_check_at=clock.now()
        )
        edits = [edit.description for edit in Drift.from_json(deployment.drift).edits]
        _note(actor, deployment, audit_actions.DRIFT_RE_APPLIED, message, {"edits": edits}, {})
        wake("deployments.reconcile_deployment", deployment.pk)
    deployment.is_revert_requested = True
    return deployment


def adopt(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    """Request the edited state as a change, approved like any other. Raises Invalid, naming the
    edits, when the spec has a field for none of them.
    """
    deployment = _changeable(actor, deployment_id)
    drift, stable = Drift.from_json(deployment.drift), deployment.stable_revision
    if drift.outcome == DriftOutcome.NONE or stable is None:
        raise Conflict(
            f"{deployment} matches what was approved. There is nothing to adopt.", code="no_drift"
        )
    current = rendering.spec_of(stable)
    with rejections.as_invalid():
        adopted = adoption.adopt(current, _edits_of(stable, drift))
    if adopted.spec == current:
        edits = "; ".join(edit.description for edit in adopted.unsupported)
        raise Invalid(
            f"These edits cannot be adopted, because the serving spec has no field for them: {edits}.",
            code="not_adoptable",
        )
    comment = f"Adopts an edit made on the cluster: {drift.description}. {comment}".strip()
    counts = {"min_replicas": adopted.spec.min_replicas, "max_replicas": adopted.spec.max_replicas}
    if replicas.with_replicas(current, **counts) == adopted.spec:
        return requests.request_scale(
            actor=actor, deployment_id=deployment.pk, comment=comment, **counts
        )
    return _request_revision(actor, deployment, stable, adopted.spec, comment)


def _request_revision(
    actor: User, deployment: Deployment, stable: Revision, spec: ServingSpec, comment: str
) -> ChangeRequest:
    return requests.request_canary(
        actor=actor,
        deployment_id=deployment.pk,
        version_id=stable.version_id,
        steps=_STEPS,
        comment=comment,
        spec=spec,
    )


def _edits_of(stable: Revision, drift: Drift) -> list[Edit]:
    return [edit for edit in drift.edits if edit.name == stable.workload_name]


def _changeable(actor: User, deployment_id: int) -> Deployment:
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired:
        raise Conflict(f"{deployment} is retired.", code="retired")
    return deployment


def _require_pending(deployment: Deployment) -> None:
    if Drift.from_json(deployment.drift).outcome != DriftOutcome.PENDING:
        raise Conflict(f"No drift of {deployment} is held for review.", code="no_drift")


def _note(
    actor: User,
    deployment: Deployment,
    action: AuditAction,
    message: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    timeline.note(deployment=deployment, kind="drift choice", message=message, actor=actor)
    trail.record(
        actor=actor,
        action=action,
        obj=deployment,
        team_slug=deployment.team.slug,
        before=before,
        after=after,
    )
