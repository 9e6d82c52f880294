"""Asking for a change: everything is checked, then the request waits for its approvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from deployments import rejections
from deployments.changes.services import approvals, drafts
from deployments.changes.services import submit as change_submit
from deployments.changes.services.drafts import ChangeDraft
from deployments.changes.services.submit import Asked
from deployments.errors import Rejected
from deployments.manifests.services import defaults
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.preflight.services import preflight
from deployments.registry.selectors import versions
from deployments.spec.domain import kubernetes_names
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind, DeploymentState
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict


def request_deploy(*, actor: User, draft: DeployDraft, comment: str = "") -> ChangeRequest:
    """Make the deployment, its first revision and the request. Raises Invalid or QuotaExceeded when
    a check refuses, Conflict when the name was taken meanwhile.
    """
    version = versions.get_version(actor=actor, version_id=draft.version_id)
    policy.require(actor, Action.REQUEST_CHANGE, version)
    try:
        kubernetes_names.require_legal(draft.name, namespace=version.model.team.slug)
    except Rejected as error:
        raise rejections.as_invalid(error) from error
    checked = preflight.check(actor=actor, draft=draft)
    preflight.require_ok(checked)
    cluster = clusters.get_cluster(draft.cluster_id)
    spec = defaults.complete_spec(draft.spec, version, cluster.serving, cluster.capabilities)
    asked = Asked(
        ChangeKind.DEPLOY, approvals.clean(comment), version=version, spec=spec, preflight=checked
    )
    try:
        with transaction.atomic():
            deployment = _make_deployment(actor, draft, version)
            return change_submit.submit(actor, deployment, asked)
    except IntegrityError as error:
        raise Conflict(
            f"{version.model.team.slug}/{draft.name} was just taken. Choose another name.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error


def submit(*, actor: User, draft: ChangeDraft) -> ChangeRequest:
    """Raises Invalid or QuotaExceeded when a check refuses."""
    if draft.asked.version is None:
        return change_submit.submit_alone(actor, draft.deployment, draft.asked)
    return change_submit.check_and_submit(actor, draft.deployment, draft.asked)


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
    draft = drafts.canary(
        actor=actor,
        deployment_id=deployment_id,
        version_id=version_id,
        steps=steps,
        comment=comment,
        spec=spec,
        plan=plan,
    )
    return submit(actor=actor, draft=draft)


def request_roll_back(
    *, actor: User, deployment_id: int, revision_number: int, comment: str = ""
) -> ChangeRequest:
    draft = drafts.roll_back(
        actor=actor,
        deployment_id=deployment_id,
        revision_number=revision_number,
        comment=comment,
    )
    return submit(actor=actor, draft=draft)


def request_scale(
    *,
    actor: User,
    deployment_id: int,
    min_replicas: int,
    max_replicas: int,
    comment: str = "",
) -> ChangeRequest:
    draft = drafts.scale(
        actor=actor,
        deployment_id=deployment_id,
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        comment=comment,
    )
    return submit(actor=actor, draft=draft)


def request_stop(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    draft = drafts.stop(actor=actor, deployment_id=deployment_id, comment=comment)
    return submit(actor=actor, draft=draft)


def request_start(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    draft = drafts.start(actor=actor, deployment_id=deployment_id, comment=comment)
    return submit(actor=actor, draft=draft)


def request_retire(*, actor: User, deployment_id: int, comment: str = "") -> ChangeRequest:
    draft = drafts.retire(actor=actor, deployment_id=deployment_id, comment=comment)
    return submit(actor=actor, draft=draft)


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
        state_reason="Waiting for approval.",
    )
