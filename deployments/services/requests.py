"""Asking for a change: everything is checked, then the request waits for its approvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from deployments.domain import names, rollout_plans, rollouts, specs
from deployments.domain.preflight import DeployDraft, Preflight
from deployments.domain.problems import Rejected
from deployments.domain.rollout_plans import PlanSettings
from deployments.domain.specs import ServingSpec
from deployments.domain.states import ChangeKind, ChangeState, DeploymentState
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.selectors import changes as change_selectors
from deployments.selectors import deployments as deployment_selectors
from deployments.selectors import plans
from deployments.services import actions, preflight, timeline
from deployments.services.change_states import SUBMITTED_SECONDS
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid

_LONGEST_COMMENT = 2000


@dataclass(frozen=True, slots=True)
class _Asked:
    kind: ChangeKind
    comment: str
    version: ModelVersion | None = None
    spec: ServingSpec | None = None
    steps: tuple[rollouts.Step, ...] = ()
    plan: PlanSettings | None = None
    preflight: Preflight | None = None


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
    spec = preflight.with_image(draft.spec)
    asked = _Asked(
        ChangeKind.DEPLOY, _clean(comment), version=version, spec=spec, preflight=checked
    )
    try:
        with transaction.atomic():
            deployment = _make_deployment(actor, draft, version)
            return _submit(actor, deployment, asked)
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
    deployment = _changeable(actor, deployment_id)
    version = preflight.visible_version(actor, version_id)
    try:
        settings = rollout_plans.check(plan or {})
        checked = rollouts.check_steps(list(steps), kind=settings.kind)
    except Rejected as error:
        raise preflight.as_invalid(error) from error
    stable = _stable_of(deployment)
    _require_same_model(stable, version)
    asked = _Asked(
        ChangeKind.CANARY,
        _clean(comment),
        version=version,
        spec=preflight.with_image(spec or specs.from_json(stable.spec)),
        steps=checked,
        plan=settings,
    )
    return _check_and_submit(actor, deployment, asked)


def request_roll_back(
    *, actor: User, deployment_id: int, revision_number: int, comment: str = ""
) -> ChangeRequest:
    """Ask for a new revision with the version and spec of an earlier one; it takes over when ready."""
    deployment = _changeable(actor, deployment_id)
    stable = _stable_of(deployment)
    rows = deployment.revisions.select_related("version__model__team")
    earlier = rows.filter(number=revision_number).first()
    if earlier is None or earlier.pk == stable.pk:
        raise Invalid(
            f"{deployment} has no other revision r{revision_number} to roll back to.",
            fields={"revision_number": "choose an earlier revision"},
        )
    asked = _Asked(
        ChangeKind.ROLL_BACK,
        _clean(comment),
        version=earlier.version,
        spec=specs.from_json(earlier.spec),
    )
    return _check_and_submit(actor, deployment, asked)


def request_retire(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    deployment = _changeable(actor, deployment_id)
    return _submit_alone(actor, deployment, _Asked(ChangeKind.RETIRE, _clean(comment)))


def _changeable(actor: User, deployment_id: int) -> Deployment:
    deployment = deployment_selectors.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.REQUEST_CHANGE, deployment)
    if deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} is retired. Make a new deployment.", code="retired")
    open_change = ChangeRequest.objects.filter(
        deployment=deployment, state__in=change_selectors.OPEN_STATES
    ).first()
    if open_change is not None:
        raise _already_open(open_change)
    return deployment


def _already_open(change: ChangeRequest) -> Conflict:
    fix = "abort its rollout" if change.state == ChangeState.APPLYING else "withdraw it"
    return Conflict(
        f"{change} (request {change.pk}) is {change.state}. Let it finish, or {fix} first.",
        code="change_open",
    )


def _stable_of(deployment: Deployment) -> Revision:
    if deployment.stable_revision is None:
        raise Conflict(f"{deployment} serves nothing yet.", code="not_serving")
    return deployment.stable_revision


def _require_same_model(stable: Revision, version: ModelVersion) -> None:
    """Another model answers under another path, so the stable URL would break for its callers."""
    if stable.version.model_id != version.model_id:
        name = stable.version.model.name
        raise Invalid(
            f"This deployment serves {name}; {version.label} is another model. Make a new "
            "deployment for it.",
            fields={"version_id": f"choose a version of {name}"},
        )


def _check_and_submit(actor: User, deployment: Deployment, asked: _Asked) -> ChangeRequest:
    if asked.version is None or asked.spec is None:
        raise Invalid(f"{asked.kind} needs a version and a spec.")
    checked = preflight.check_revision(
        actor=actor,
        deployment=deployment,
        version=asked.version,
        spec=asked.spec,
        number=_next_number(deployment),
    )
    preflight.require_ok(checked)
    return _submit_alone(actor, deployment, replace(asked, preflight=checked))


def _submit_alone(actor: User, deployment: Deployment, asked: _Asked) -> ChangeRequest:
    try:
        with transaction.atomic():
            return _submit(actor, deployment, asked)
    except IntegrityError as error:
        raise Conflict(
            f"Someone else asked for a change of {deployment} a moment ago. Look again.",
            code="change_open",
        ) from error


def _make_deployment(actor: User, draft: DeployDraft, version: ModelVersion) -> Deployment:
    team = version.model.team
    return Deployment.objects.create(
        team=team,
        cluster_id=draft.cluster_id,
        name=draft.name,
        namespace=team.slug,
        created_by=actor,
        created_at=clock.now(),
        state=DeploymentState.PENDING,
        state_reason="Waits for approval.",
    )


def _next_number(deployment: Deployment) -> int:
    return (deployment.revisions.aggregate(highest=Max("number"))["highest"] or 0) + 1


def _submit(actor: User, deployment: Deployment, asked: _Asked) -> ChangeRequest:
    at = clock.now()
    revision = None
    if asked.version is not None and asked.spec is not None:
        revision = Revision.objects.create(
            deployment=deployment,
            number=_next_number(deployment),
            version=asked.version,
            spec=asked.spec.to_json(),
            created_by=actor,
            created_at=at,
        )
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
        checks=[check.to_json() for check in checked.checks] if checked else [],
        cost=checked.cost.to_json() if checked else {},
        created_at=at,
        submitted_at=at,
        deadline_at=deadline_at,
        next_check_at=deadline_at,
    )
    change.evidence_hash = plans.evidence_of(change)
    change.save()
    _record(actor, change)
    return change


def _record(actor: User, change: ChangeRequest) -> None:
    version = change.revision.version.label if change.revision else ""
    trail.record(
        actor=actor,
        action=actions.CHANGE_REQUESTED,
        obj=change,
        label=str(change),
        team_slug=change.team.slug,
        after={"state": change.state, "kind": change.kind, "version": version},
        reason=change.comment,
        evidence=change.evidence_hash,
    )
    timeline.note(
        deployment=change.deployment,
        kind="requested",
        message=f"asked to {change.kind.replace('_', ' ')} {version}".strip(),
        actor=actor,
        revision_number=change.revision.number if change.revision else None,
    )


def _clean(comment: str) -> str:
    text = comment.strip()
    if len(text) > _LONGEST_COMMENT:
        raise Invalid(
            f"The comment is longer than {_LONGEST_COMMENT} characters.",
            fields={"comment": "too long"},
        )
    return text
