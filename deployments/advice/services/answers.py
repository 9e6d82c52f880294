"""The answers that people give to advice: request it, snooze it, dismiss it or take it up again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import MONTHS_PER_YEAR, Saving
from deployments.advice.domain.kinds import multi_model
from deployments.advice.selectors import facts, items
from deployments.advice.services import team_advice
from deployments.changes.services import drafts, requests
from deployments.changes.services.drafts import ChangeDraft
from deployments.models import AdviceItem, ChangeRequest, Deployment
from deployments.rejections import as_invalid
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ADVICE, AdviceState
from fleet.gpus.domain.money import CENT
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock
from portal.core.definitions.figures import format_money
from portal.core.errors import Conflict, Invalid

REQUESTED: Final = register("advice.requested", "requested the advice on")
SNOOZED: Final = register("advice.snoozed", "snoozed the advice on")
DISMISSED: Final = register("advice.dismissed", "dismissed the advice on")
REOPENED: Final = register("advice.reopened", "reopened the advice on")
LONGEST_SNOOZE_DAYS: Final = 90
_STEPS: Final = ({"weight": 10, "soak_seconds": 600, "min_requests": 100},)


def request(*, actor: User, item_id: int) -> ChangeRequest:
    """Request the change of the advice, with today's figures. Everything else is as for any request:
    preflight, approvers, rollout. Raises Conflict when the advice no longer holds.
    """
    item = _changeable(actor, item_id)
    if not item.proposal or item.deployment is None:
        raise Conflict(
            "This advice can't become a change request. Apply it on the cluster.", code="no_change"
        )
    if AdviceState.REQUESTED not in ADVICE[AdviceState(item.state)]:
        raise Conflict(f"This advice is {item.state}.", code="advice_state")
    saving = _still_holds(item)
    draft = _draft(actor, item.deployment, item, saving)
    change = requests.submit(actor=actor, draft=draft)
    with transaction.atomic():
        _move(
            actor,
            item,
            AdviceState.REQUESTED,
            REQUESTED,
            change=change,
            message=saving.message,
            formula=saving.formula,
            cost_amount=saving.cost_amount,
            saving_amount=saving.saving_amount,
        )
    return change


def snooze(*, actor: User, item_id: int, days: int, reason: str = "") -> AdviceItem:
    item = _changeable(actor, item_id)
    if not 1 <= days <= LONGEST_SNOOZE_DAYS:
        raise Invalid(
            f"Snooze for 1 to {LONGEST_SNOOZE_DAYS} days.",
            fields={"days": f"Snooze for 1 to {LONGEST_SNOOZE_DAYS} days."},
        )
    until = clock.now() + timedelta(days=days)
    return _answer(actor, item, AdviceState.SNOOZED, SNOOZED, reason, snoozed_until=until)


def dismiss(*, actor: User, item_id: int, reason: str) -> AdviceItem:
    item = _changeable(actor, item_id)
    if not reason.strip():
        raise Invalid("Enter a reason.", fields={"reason": "Enter a reason."})
    return _answer(actor, item, AdviceState.DISMISSED, DISMISSED, reason, snoozed_until=None)


def reopen(*, actor: User, item_id: int) -> AdviceItem:
    item = _changeable(actor, item_id)
    if item.state not in (AdviceState.SNOOZED, AdviceState.DISMISSED):
        raise Conflict(f"This advice is {item.state}.", code="advice_state")
    return _answer(actor, item, AdviceState.OPEN, REOPENED, "", snoozed_until=None)


def _changeable(actor: User, item_id: int) -> AdviceItem:
    item = items.get_visible(actor=actor, item_id=item_id)
    if item.team is None:
        policy.require_platform_admin(actor)
    else:
        policy.require(actor, Action.REQUEST_CHANGE, item.team)
    return item


def _answer(
    actor: User,
    item: AdviceItem,
    state: AdviceState,
    action: AuditAction,
    reason: str,
    **fields: Any,
) -> AdviceItem:
    # PostgreSQL stores no NUL.
    cleaned = reason.replace("\0", "").strip()[:500]
    with transaction.atomic():
        _move(actor, item, state, action, answer_reason=cleaned, answered_by=actor, **fields)
    item.refresh_from_db()
    return item


def _move(
    actor: User, item: AdviceItem, to: AdviceState, action: AuditAction, **fields: Any
) -> None:
    """Change the state by compare-and-swap and record it in the audit trail. Call inside a transaction."""
    old = AdviceState(item.state)
    if to not in ADVICE[old]:
        raise Conflict(f"This advice is {old}.", code="advice_state")
    if not AdviceItem.objects.filter(pk=item.pk, state=old).update(state=to, **fields):
        raise Conflict("Someone else answered it at the same time. Reload the page.")
    trail.record(
        actor=actor,
        action=action,
        obj=item,
        team_slug=item.team.slug if item.team else "",
        before={"state": old},
        after={"state": to, "saving_amount": str(item.saving_amount)},
        reason=fields.get("answer_reason", ""),
    )


def _still_holds(item: AdviceItem) -> Saving:
    """Compute the saving again, because a page that is an hour old may be out of date. Raises Conflict if it no
    longer holds.
    """
    saving = _compute(item)
    if saving is not None and saving.proposal is not None:
        return saving
    raise Conflict(
        f"This advice on {item.subject} no longer holds: its figures changed.", code="advice_gone"
    )


def _compute(item: AdviceItem) -> Saving | None:
    if item.team is None:
        return None
    if item.kind == multi_model.CODE:
        whole = team_advice.compute(item.team, wanted_of=item.deployment_id)
        of_each = {deployment.pk: advice for deployment, advice in whole}
        return of_each.get(item.deployment_id or 0, {}).get(item.kind)
    own = facts.list_deployments(item.team, deployment_id=item.deployment_id)
    return next((dict(catalogue.advise_deployment(known)).get(item.kind) for _, known in own), None)


def _draft(actor: User, deployment: Deployment, item: AdviceItem, saving: Saving) -> ChangeDraft:
    proposal = saving.proposal
    assert proposal is not None  # noqa: S101  as _still_holds returns it
    year = (saving.saving_amount * MONTHS_PER_YEAR).quantize(CENT)
    comment = (
        f"{saving.message} Saves {format_money(saving.saving_amount)} a month, {format_money(year)} a year: "
        f"{saving.formula}. Risk {saving.risk}: {saving.risk_reason}"
    )
    if proposal.kind == "stop":
        return drafts.stop(actor=actor, deployment_id=deployment.pk, comment=comment)
    if proposal.kind == "scale":
        return drafts.scale(
            actor=actor,
            deployment_id=deployment.pk,
            min_replicas=proposal.settings["min_replicas"],
            max_replicas=proposal.settings["max_replicas"],
            comment=comment,
        )
    if proposal.deployment_id is not None:
        deployment = Deployment.objects.get(pk=proposal.deployment_id, team=item.team)
    now = facts.spec_of(deployment)
    with as_invalid():
        spec = ServingSpec.from_json({**now.to_json(), **proposal.settings})
    return drafts.canary(
        actor=actor,
        deployment_id=deployment.pk,
        version_id=facts.stable_of(deployment).version_id,
        steps=[dict(step) for step in _STEPS],
        comment=comment,
        spec=spec,
    )
