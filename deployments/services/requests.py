"""Asking for a change: everything is checked, then the request waits for its approvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from deployments.domain import names, robot_limit, rollout_plans, rollout_steps, scales, specs
from deployments.domain.preflight import DeployDraft
from deployments.domain.problems import Rejected
from deployments.domain.specs import ServingSpec
from deployments.domain.states import ChangeKind, DeploymentState
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.selectors import pipelines, plans, rollout_limits, rollout_offers
from deployments.services import (
    approving,
    completing,
    preflight,
    prometheus_trials,
    submitting,
)
from deployments.services.submitting import Asked
from fleet.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid


def request_deploy(*, actor: User, draft: DeployDraft, comment: str = "") -> ChangeRequest:
    """Make the deployment, its first revision and the request. Raises Invalid or QuotaExceeded when
    a check refuses, Conflict when the name was taken meanwhile.
    """
    version = preflight.visible_version(actor, draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    try:
        names.require_legal(draft.name, namespace=version.model.team.slug)
    except Rejected as error:
        raise preflight.as_invalid(error) from error
    checked = preflight.check(actor=actor, draft=draft)
    preflight.require_ok(checked)
    serving = clusters.get_cluster(draft.cluster_id).serving
    spec = completing.completed(draft.spec, version, serving)
    asked = Asked(
        ChangeKind.DEPLOY, approving.clean(comment), version=version, spec=spec, preflight=checked
    )
    try:
        with transaction.atomic():
            deployment = _make_deployment(actor, draft, version)
            return submitting.submit(actor, deployment, asked)
    except IntegrityError as error:
        raise Conflict(
            f"{version.model.team.slug}/{draft.name} was taken a moment ago. Choose another name.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error


def request_canary(
    *,
    actor: User,
    deployment_id: int,
    version_id: int,
    steps: Sequence[dict[str, Any]],
    comment: str = "",
    spec: ServingSpec | None = None,
    plan: Mapping[str, Any] | None = None,
) -> ChangeRequest:
    """Ask to move traffic to another version in steps. `spec` None keeps the stable revision's.

    `plan` says its kind, guards and analysis as in domain/rollout_plans.py; None: the defaults.
    """
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.CANARY)
    version = preflight.visible_version(actor, version_id)
    try:
        settings = rollout_plans.check(plan or {})
        checked = rollout_steps.check_steps(list(steps), kind=settings.kind)
        percent = rollout_limits.percent_of(deployment.team_id)
        robot_limit.require_within(checked, percent, team=deployment.team.slug)
    except Rejected as error:
        raise preflight.as_invalid(error) from error
    stable = submitting.stable_of(deployment)
    _require_same_model(stable, version)
    no_kind = rollout_offers.why_not(deployment, settings.kind, spec=spec)
    if no_kind:
        raise Invalid(no_kind, fields={"kind": no_kind})
    prometheus_trials.require_usable(deployment, version, settings)
    wanted = spec or completing.for_another(plans.spec_of(stable), then=version, now=stable.version)
    asked = Asked(
        ChangeKind.CANARY,
        approving.clean(comment),
        version=version,
        spec=completing.completed(wanted, version, plans.policy_of(deployment)),
        steps=checked,
        plan=settings,
    )
    return submitting.check_and_submit(actor, deployment, asked)


def request_roll_back(
    *, actor: User, deployment_id: int, revision_number: int, comment: str = ""
) -> ChangeRequest:
    """Ask for a new revision with the version and spec of an earlier one; it takes over when ready."""
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.ROLL_BACK)
    stable = submitting.stable_of(deployment)
    rows = deployment.revisions.select_related("version__model__team")
    earlier = rows.filter(number=revision_number).first()
    if earlier is None or earlier.pk == stable.pk:
        raise Invalid(
            f"{deployment} has no other revision r{revision_number} to roll back to.",
            fields={"revision_number": "choose an earlier revision"},
        )
    asked = Asked(
        ChangeKind.ROLL_BACK,
        approving.clean(comment),
        version=earlier.version,
        spec=specs.from_json(earlier.spec),
    )
    return submitting.check_and_submit(actor, deployment, asked)


def request_scale(
    *,
    actor: User,
    deployment_id: int,
    min_replicas: int,
    max_replicas: int,
    comment: str = "",
) -> ChangeRequest:
    """Other replicas of the revision that serves: nothing new starts beside it, no traffic moves."""
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.SCALE)
    stable = submitting.stable_of(deployment)
    now = plans.spec_of(stable)
    try:
        spec = scales.with_replicas(now, min_replicas=min_replicas, max_replicas=max_replicas)
    except Rejected as error:
        raise preflight.as_invalid(error) from error
    if spec == now:
        raise Invalid(
            f"{deployment} already runs {min_replicas} to {max_replicas} replicas.",
            fields={"min_replicas": "as now", "max_replicas": "as now"},
        )
    asked = Asked(
        ChangeKind.SCALE,
        approving.clean(comment),
        version=stable.version,
        spec=spec,
        revision=stable,
        scale={
            "revision": stable.number,
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
        },
    )
    return submitting.check_and_submit(actor, deployment, asked)


def request_start(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    """Ask to bring back the stable revision of a deployment that was stopped."""
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.START)
    stable = submitting.stable_of(deployment)
    if not deployment.is_stopped:
        raise Conflict(f"{deployment} is not stopped.", code="not_stopped")
    asked = Asked(
        ChangeKind.START,
        approving.clean(comment),
        version=stable.version,
        spec=plans.spec_of(stable),
        revision=stable,
    )
    return submitting.check_and_submit(actor, deployment, asked)


def request_retire(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.RETIRE)
    used_by = ", ".join(row.name for row in pipelines.using(deployment))
    if used_by:
        raise Conflict(
            f"The pipeline {used_by} asks {deployment}. Change or retire that first.",
            code="in_a_pipeline",
        )
    return submitting.submit_alone(
        actor, deployment, Asked(ChangeKind.RETIRE, approving.clean(comment))
    )


def _require_same_model(stable: Revision, version: ModelVersion) -> None:
    """Another model answers under another path, so the stable URL would break for its callers."""
    if stable.version.model_id != version.model_id:
        name = stable.version.model.name
        raise Invalid(
            f"This deployment serves {name}; {version.label} is another model. Make a new "
            "deployment for it.",
            fields={"version_id": f"choose a version of {name}"},
        )


def _make_deployment(actor: User, draft: DeployDraft, version: ModelVersion) -> Deployment:
    team = version.model.team
    return Deployment.objects.create(
        team=team,
        cluster_id=draft.cluster_id,
        name=draft.name,
        namespace=team.slug,
        environment=draft.environment,
        created_by=actor,
        created_at=clock.now(),
        state=DeploymentState.PENDING,
        state_reason="Waits for approval.",
    )
