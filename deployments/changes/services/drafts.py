"""A change of a deployment before it is asked for: read, completed, and what can be checked of it.

The same for a request and for its preflight, so that both refuse with the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.domain import robot_limit, rollout_plans, rollout_steps, scales, specs
from deployments.domain.preflight import Check, Cost
from deployments.domain.problems import Rejected
from deployments.domain.specs import ServingSpec
from deployments.domain.states import ChangeKind
from deployments.models import Deployment, ModelVersion, Revision
from deployments.selectors import pipelines, plans, rollout_limits, rollout_offers
from deployments.services import (
    approving,
    completing,
    preflight,
    prometheus_trials,
    submitting,
)
from deployments.services.submitting import Asked
from portal.accounts.models import User
from portal.core.errors import Conflict, Invalid


@dataclass(frozen=True, slots=True)
class ChangeDraft:
    """May be asked for now, as far as the portal itself can tell."""

    deployment: Deployment
    asked: Asked


@dataclass(frozen=True, slots=True)
class ChangePreflight:
    """What the request would carry. Nothing is checked of a retirement, which only removes."""

    checks: tuple[Check, ...] = ()
    cost: Cost | None = None
    manifests: str = ""

    @property
    def can_submit(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def check(*, actor: User, draft: ChangeDraft) -> ChangePreflight:
    """Writes nothing."""
    if draft.asked.version is None:
        return ChangePreflight()
    found = submitting.check(actor, draft.deployment, draft.asked)
    return ChangePreflight(found.checks, found.cost, found.manifests)


def canary(
    *,
    actor: User,
    deployment_id: int,
    version_id: int,
    steps: Sequence[dict[str, Any]],
    comment: str = "",
    spec: ServingSpec | None = None,
    plan: Mapping[str, Any] | None = None,
) -> ChangeDraft:
    """Traffic to another version in steps. `spec` None keeps the stable revision's.

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
    return ChangeDraft(deployment, asked)


def roll_back(
    *, actor: User, deployment_id: int, revision_number: int, comment: str = ""
) -> ChangeDraft:
    """A new revision with the version and spec of an earlier one; it takes over when ready."""
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
    return ChangeDraft(deployment, asked)


def scale(
    *,
    actor: User,
    deployment_id: int,
    min_replicas: int,
    max_replicas: int,
    comment: str = "",
) -> ChangeDraft:
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
    return ChangeDraft(deployment, asked)


def start(*, actor: User, deployment_id: int, comment: str = "") -> ChangeDraft:
    """The stable revision again, of a deployment that was stopped."""
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
    return ChangeDraft(deployment, asked)


def retire(*, actor: User, deployment_id: int, comment: str = "") -> ChangeDraft:
    deployment = submitting.changeable(actor, deployment_id, ChangeKind.RETIRE)
    used_by = ", ".join(row.name for row in pipelines.using(deployment))
    if used_by:
        raise Conflict(
            f"The pipeline {used_by} asks {deployment}. Change or retire that first.",
            code="in_a_pipeline",
        )
    return ChangeDraft(deployment, Asked(ChangeKind.RETIRE, approving.clean(comment)))


def _require_same_model(stable: Revision, version: ModelVersion) -> None:
    """Another model answers under another path, so the stable URL would break for its callers."""
    if stable.version.model_id != version.model_id:
        name = stable.version.model.name
        raise Invalid(
            f"This deployment serves {name}; {version.label} is another model. Make a new "
            "deployment for it.",
            fields={"version_id": f"choose a version of {name}"},
        )
