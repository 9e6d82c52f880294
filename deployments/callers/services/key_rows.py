"""Find a key that may be changed, and record that it was."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from deployments.callers.services.issuing import KeyLimits
from deployments.models import CallerKey, Deployment
from deployments.serving.selectors import deployments
from deployments.serving.services import desired_state, timeline
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action, Actor, System
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core.errors import Conflict, NotFound
from portal.core.wakeups import run_at_once

# A person waits no longer for a cluster that does not answer.
_AT_ONCE_SECONDS: Final = 3.0


def changeable(actor: User, deployment_id: int, *, may_be_retired: bool = False) -> Deployment:
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.MANAGE_CALLERS, deployment)
    if not may_be_retired and (deployment.is_retired or deployment.is_retiring):
        raise Conflict(f"{deployment} is retired, so it has no callers.", code="retired")
    return deployment


def open_key(deployment: Deployment, key_id: int, at: datetime) -> CallerKey:
    rows = CallerKey.objects.select_related("consumer", "deployment__team", "token_issuer")
    row = rows.filter(pk=key_id, deployment=deployment, pipeline_key=None).first()
    if row is None:
        raise NotFound(f"{deployment} has no key {key_id}.")
    if row.ended_at is not None or row.ends_at <= at:
        raise Conflict(f"The key {row} has already ended.", code="key_ended")
    return row


def record(
    actor: Actor,
    action: AuditAction,
    row: CallerKey,
    verb: str,
    *,
    before: dict[str, Any] | None = None,
) -> None:
    """Record the change in the audit trail and the timeline, and queue the new state for the gateway, in the
    caller's transaction.
    """
    deployment, consumer = row.deployment, row.consumer
    trail.record(
        actor=actor,
        action=action,
        obj=row,
        label=f"{consumer.name} for {deployment}",
        team_slug=deployment.team.slug,
        before=before,
        after={
            "prefix": row.prefix,
            **_claim_of(row),
            "ends_at": row.ends_at.isoformat(),
            **asdict(KeyLimits.from_key(row)),
        },
    )
    timeline.note(
        deployment=deployment,
        kind="caller key",
        message=f"{'access' if row.claim_value else 'key'} {row.hint} of {consumer.name} {verb}",
        actor=actor,
    )
    if not deployment.is_retired:
        desired_state.change_caller_keys(deployment)
        if not isinstance(actor, System):
            run_at_once("deployments.push_caller_keys", deployment.pk, within=_AT_ONCE_SECONDS)


def _claim_of(row: CallerKey) -> dict[str, str]:
    if row.token_issuer is None:
        return {}
    return {"token_issuer": row.token_issuer.name, "claim_value": row.claim_value}
