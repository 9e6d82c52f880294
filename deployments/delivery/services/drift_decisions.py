"""What people choose to do about edits on the cluster: put them right, or ask for them properly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from deployments import audit_actions, rejections
from deployments.changes.services import requests
from deployments.delivery.domain import adoption
from deployments.delivery.domain import drift as delivery_drift
from deployments.delivery.domain.drift import Drift, Outcome
from deployments.delivery.domain.edits import Edit
from deployments.errors import Rejected
from deployments.manifests.selectors import rendering
from deployments.manifests.services import defaults
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.serving.selectors import deployments
from deployments.serving.services import timeline
from deployments.spec.domain import replicas
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import DriftPolicy
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake

_STEPS = [{"weight": 50, "soak_seconds": 300, "min_requests": 0}]


@dataclass(frozen=True, slots=True)
class DriftView:
    """`adoptable` says whether the edits can be asked for as a change, `left` which cannot."""

    policy: DriftPolicy
    drift: Drift
    is_heal_wanted: bool
    is_adoptable: bool
    left: Sequence[Edit]

    @property
    def is_held(self) -> bool:
        return self.drift.outcome == Outcome.HELD and not self.is_heal_wanted


def view_of(deployment: Deployment) -> DriftView:
    drift = delivery_drift.from_json(deployment.drift)
    stable = deployment.stable_revision
    spec = None if stable is None else rendering.spec_of(stable)
    left: Sequence[Edit] = drift.edits
    is_adoptable = False
    if spec is not None and stable is not None:
        try:
            adopted = adoption.adopt(spec, _of_revision(stable, drift))
        except Rejected:
            adopted = adoption.Adopted(spec, drift.edits)
        wanted = defaults.autoscaled_in_place(
            adopted.spec, rendering.policy_of(deployment), deployment.cluster.capabilities
        )
        left, is_adoptable = adopted.left, wanted != spec
    return DriftView(
        policy=DriftPolicy(deployment.drift_policy),
        drift=drift,
        is_heal_wanted=deployment.is_heal_wanted,
        is_adoptable=is_adoptable,
        left=left,
    )


def set_policy(*, actor: User, deployment_id: int, to: DriftPolicy) -> Deployment:
    """Whether later edits are put right at once, or held until someone chooses."""
    deployment = _changeable(actor, deployment_id)
    old = deployment.drift_policy
    if old == to:
        return deployment
    words = {
        DriftPolicy.RE_APPLY: "drift is reverted automatically from now on",
        DriftPolicy.HOLD: "drift is held for review from now on",
    }[to]
    with transaction.atomic():
        Deployment.objects.filter(pk=deployment.pk).update(
            drift_policy=to, next_check_at=clock.now()
        )
        _note(actor, deployment, audit_actions.DRIFT_POLICY, words, {"policy": old}, {"policy": to})
        wake("deployments.reconcile_deployment", deployment.pk)
    deployment.drift_policy = to
    return deployment


def re_apply(*, actor: User, deployment_id: int) -> Deployment:
    """Put right what is held. What was approved is applied again, nothing else."""
    deployment = _changeable(actor, deployment_id)
    _require_held(deployment)
    words = "reverted drift to the approved manifests"
    with transaction.atomic():
        Deployment.objects.filter(pk=deployment.pk).update(
            is_heal_wanted=True, next_check_at=clock.now()
        )
        edits = [edit.words for edit in delivery_drift.from_json(deployment.drift).edits]
        _note(actor, deployment, audit_actions.DRIFT_RE_APPLIED, words, {"edits": edits}, {})
        wake("deployments.reconcile_deployment", deployment.pk)
    deployment.is_heal_wanted = True
    return deployment


def adopt(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    """Ask for what the cluster was edited to. It is a request as any other: nothing is approved by
    the edit. Raises Invalid with what the spec has no word for when nothing of it can be asked for.
    """
    deployment = _changeable(actor, deployment_id)
    drift, stable = delivery_drift.from_json(deployment.drift), deployment.stable_revision
    if drift.outcome == Outcome.NONE or stable is None:
        raise Conflict(
            f"{deployment} matches what was approved. There is nothing to adopt.", code="no_drift"
        )
    now = rendering.spec_of(stable)
    try:
        adopted = adoption.adopt(now, _of_revision(stable, drift))
    except Rejected as error:
        raise rejections.as_invalid(error) from error
    if adopted.spec == now:
        told = "; ".join(edit.words for edit in adopted.left)
        raise Invalid(
            f"These edits cannot be adopted, because the serving spec has no field for them: {told}.",
            code="not_adoptable",
        )
    words = f"Adopts an edit made on the cluster: {drift.words}. {comment}".strip()
    return _request(actor, deployment, stable, adopted.spec, words)


def _request(
    actor: User, deployment: Deployment, stable: Revision, spec: ServingSpec, words: str
) -> ChangeRequest:
    """More or fewer replicas need nothing new beside what serves; all else is another revision."""
    counts = {"min_replicas": spec.min_replicas, "max_replicas": spec.max_replicas}
    if replicas.with_replicas(rendering.spec_of(stable), **counts) == spec:
        return requests.request_scale(
            actor=actor, deployment_id=deployment.pk, comment=words, **counts
        )
    return requests.request_canary(
        actor=actor,
        deployment_id=deployment.pk,
        version_id=stable.version_id,
        steps=_STEPS,
        comment=words,
        spec=spec,
    )


def _of_revision(stable: Revision, drift: Drift) -> list[Edit]:
    return [edit for edit in drift.edits if edit.name == stable.workload_name]


def _changeable(actor: User, deployment_id: int) -> Deployment:
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired:
        raise Conflict(f"{deployment} is retired.", code="retired")
    return deployment


def _require_held(deployment: Deployment) -> None:
    if delivery_drift.from_json(deployment.drift).outcome != Outcome.HELD:
        raise Conflict(f"No drift of {deployment} is held for review.", code="no_drift")


def _note(
    actor: User,
    deployment: Deployment,
    action: AuditAction,
    words: str,
    before: dict[str, object],
    after: dict[str, object],
) -> None:
    timeline.note(deployment=deployment, kind="drift choice", message=words, actor=actor)
    trail.record(
        actor=actor,
        action=action,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        before=before,
        after=after,
    )
