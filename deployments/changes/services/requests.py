"""Requests a change of a deployment: everything is checked, then it waits for its approvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec, cast

from deployments import rejections
from deployments.changes.services import approvals, drafts, new_request, resubmissions
from deployments.changes.services import submit as change_submit
from deployments.changes.services.drafts import ChangeDraft
from deployments.changes.services.submit import ChangeSpec
from deployments.changes.services.transitions import PENDING_REASONS
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.services import preflight, refusals
from deployments.preflight.services.preflight import RevisionPreflight
from deployments.registry.selectors import versions
from deployments.spec.domain import kubernetes_names
from deployments.states import ChangeKind, ChangeState, DeploymentState
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Invalid

Given = ParamSpec("Given")


def request_deploy(
    *, actor: User, draft: DeployDraft, comment: str = "", replaces_id: int | None = None
) -> ChangeRequest:
    """Make the deployment, its first revision and the request. Raises Invalid or QuotaExceeded when
    a check refuses, Conflict when the name was taken meanwhile.

    With `replaces_id` it takes the place of that request of the actor's, which is withdrawn if it still waits.
    """
    version = versions.get_version(actor=actor, version_id=draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    replaced = _find_replaced(actor, version, replaces_id)
    draft = _free_name(draft, replaced)
    with rejections.as_invalid():
        kubernetes_names.require_legal(draft.name, namespace=version.model.team.slug)
    cluster = clusters.get_cluster(draft.cluster_id)
    checked = preflight.check_deploy(draft, version, cluster)
    refusals.require_ok(checked)
    requested = ChangeSpec(
        ChangeKind.DEPLOY,
        approvals.clean(comment),
        version=version,
        spec=checked.rendered.spec,
        preflight=checked,
        replaces=replaced,
    )
    with new_request.new_name(f"{version.model.team.slug}/{draft.name}"):
        if replaced is not None:
            resubmissions.withdraw_replaced(actor=actor, change=replaced)
        deployment = _make_deployment(actor, draft, version)
        return change_submit.submit(actor, deployment, requested)


def check_deploy(
    *, actor: User, draft: DeployDraft, replaces_id: int | None = None
) -> RevisionPreflight:
    """Run the checks of `request_deploy` without a request."""
    version = versions.get_version(actor=actor, version_id=draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    replaced = _find_replaced(actor, version, replaces_id)
    return preflight.check(actor=actor, draft=_free_name(draft, replaced))


def _find_replaced(
    actor: User, version: ModelVersion, replaces_id: int | None
) -> ChangeRequest | None:
    """Return the request in whose place another one is sent. Raises Invalid for one of another team."""
    if replaces_id is None:
        return None
    replaced = resubmissions.get_replaceable(actor=actor, change_id=replaces_id)
    if replaced.team_id != version.model.team_id:
        raise Invalid(
            f"The {replaced} is of {replaced.team}. Choose a version of that team.",
            fields={"version_id": "of another team than the replaced request"},
        )
    return replaced


def _free_name(draft: DeployDraft, replaced: ChangeRequest | None) -> DeployDraft:
    """Return the draft to which the name of the replaced request is free."""
    if replaced is None:
        return draft
    return replace(draft, replaced_deployment_id=replaced.deployment_id)


def submit(*, actor: User, draft: ChangeDraft) -> ChangeRequest:
    """Submit a draft. Raises Invalid or QuotaExceeded if a check refuses."""
    if draft.requested.version is None:
        return change_submit.submit_alone(actor, draft.deployment, draft.requested)
    return change_submit.check_and_submit(actor, draft.deployment, draft.requested)


def _requesting(build: Callable[Given, ChangeDraft]) -> Callable[Given, ChangeRequest]:
    """Return a function that builds the draft and submits it. It takes what the draft takes."""

    @wraps(build)
    def request(*args: Given.args, **fields: Given.kwargs) -> ChangeRequest:
        actor = cast("User", fields["actor"])
        return submit(actor=actor, draft=build(*args, **fields))

    return request


request_canary = _requesting(drafts.canary)
request_retire = _requesting(drafts.retire)
request_roll_back = _requesting(drafts.roll_back)
request_scale = _requesting(drafts.scale)
request_start = _requesting(drafts.start)
request_stop = _requesting(drafts.stop)


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
        state_reason=PENDING_REASONS[ChangeState.SUBMITTED],
    )
