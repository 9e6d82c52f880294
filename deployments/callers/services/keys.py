"""Create, rotate and revoke keys of callers. The gateway follows by reconciliation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q

from deployments import audit_actions
from deployments.callers.services import claims, issuing, key_rows, limit_room, limits
from deployments.callers.services.issuing import NO_LIMITS, KeyLimits, NewKey
from deployments.models import CallerKey, Consumer, Deployment, TokenIssuer
from deployments.states import ConsumerKind
from portal.accounts import tokens
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.core import clock
from portal.core.errors import Conflict, Invalid

DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 365
DEFAULT_OVERLAP_HOURS: Final = 24
MAX_OVERLAP_HOURS: Final = 30 * 24
# A Secret holds a mebibyte at most; more callers than this are one service of many.
MOST_KEYS: Final = 500
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """The fields of a new key. A name that the team already has means the same caller, whose kind and contact stay.

    `days` None is the default lifetime.
    """

    name: str
    kind: ConsumerKind = ConsumerKind.SERVICE
    contact: str = ""
    days: int | None = None
    limits: KeyLimits = NO_LIMITS
    # Both or none: instead of a key, tokens of the issuer whose claim has this value.
    token_issuer: str = ""
    claim_value: str = ""


def create(*, actor: User, deployment_id: int, draft: KeyDraft) -> NewKey:
    deployment = key_rows.changeable(actor, deployment_id)
    step_up.require(actor)
    days = _days(draft.days)
    limits.check(deployment, draft.limits)
    issuer = claims.find_issuer(deployment, draft.token_issuer, draft.claim_value.strip())
    with transaction.atomic():
        Deployment.objects.select_for_update().get(pk=deployment.pk)
        open_keys = CallerKey.objects.filter(deployment=deployment, ended_at=None)
        if open_keys.count() >= MOST_KEYS:
            raise Conflict(
                f"{deployment} has {MOST_KEYS} keys. Revoke one first.", code="too_many_keys"
            )
        consumer = _consumer(actor, deployment, draft)
        with limit_room.require_room(deployment, issuer.name if issuer else ""):
            made = _add(actor, deployment, consumer, issuer, draft, days=days)
        key_rows.record(actor, audit_actions.CALLER_KEY_CREATED, made.row, "created")
    return made


def _add(
    actor: User,
    deployment: Deployment,
    consumer: Consumer,
    issuer: TokenIssuer | None,
    draft: KeyDraft,
    *,
    days: int,
) -> NewKey:
    if issuer is None:
        return issuing.issue(actor, deployment, consumer, days=days, limits=draft.limits)
    value = draft.claim_value.strip()
    return claims.admit_caller(
        actor, deployment, consumer, issuer, value, days=days, limits=draft.limits
    )


def rotate(
    *,
    actor: User,
    deployment_id: int,
    key_id: int,
    overlap_hours: int = DEFAULT_OVERLAP_HOURS,
    days: int | None = None,
) -> NewKey:
    """Create a new key of the same caller with the same limit. The old one ends after the overlap, or when it would
    have.

    A caller with tokens is listed anew for `days`: its provider changes its tokens.
    """
    deployment = key_rows.changeable(actor, deployment_id)
    step_up.require(actor)
    lifetime = _days(days)
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise Invalid(
            f"The overlap must be 0 to {MAX_OVERLAP_HOURS} hours.",
            fields={"overlap_hours": f"0 to {MAX_OVERLAP_HOURS}"},
        )
    at = clock.now()
    with transaction.atomic():
        old = key_rows.open_key(deployment, key_id, at)
        if old.token_issuer is not None:
            made = claims.renew(actor, old, old.token_issuer, days=lifetime)
            key_rows.record(actor, audit_actions.CALLER_KEY_ROTATED, made.row, "renewed")
            return made
        ends_at = min(old.ends_at, at + timedelta(hours=overlap_hours))
        changed = CallerKey.objects.filter(pk=old.pk, rotated_at=None, ended_at=None).update(
            rotated_at=at, ends_at=ends_at
        )
        if not changed:
            raise Conflict(f"The key {old} was already rotated.", code="already_rotated")
        with limit_room.require_room(deployment, ""):
            made = issuing.issue(
                actor, deployment, old.consumer, days=lifetime, limits=KeyLimits.from_key(old)
            )
        before = {"prefix": old.prefix, "ends_at": ends_at.isoformat()}
        key_rows.record(actor, audit_actions.CALLER_KEY_ROTATED, made.row, "rotated", before=before)
    return made


def revoke(*, actor: User, deployment_id: int, key_id: int) -> CallerKey:
    """Revoke a key. It ends at once; the gateway follows within seconds."""
    deployment = key_rows.changeable(actor, deployment_id, may_be_retired=True)
    at = clock.now()
    with transaction.atomic():
        row = key_rows.open_key(deployment, key_id, at)
        changed = CallerKey.objects.filter(pk=row.pk, ended_at=None).update(
            ended_at=at, is_revoked=True, sealed=""
        )
        if not changed:
            raise Conflict(f"The key {row} has already ended.", code="key_ended")
        row.ended_at, row.is_revoked, row.sealed = at, True, ""
        key_rows.record(actor, audit_actions.CALLER_KEY_REVOKED, row, "revoked")
    return row


def has_work() -> bool:
    """Whether a key has expired or its pause has ended."""
    at = clock.now()
    is_over = Q(ends_at__lte=at) | Q(paused_until__lte=at)
    return CallerKey.objects.filter(is_over, ended_at=None).exists()


def end_expired() -> int:
    """End expired keys and take them from the gateway. Returns how many."""
    at = clock.now()
    rows = CallerKey.objects.filter(ended_at=None, ends_at__lte=at).select_related(
        "consumer", "deployment__team"
    )
    ended = 0
    for row in rows.order_by("ends_at")[:_BATCH]:
        with transaction.atomic():
            changed = CallerKey.objects.filter(pk=row.pk, ended_at=None, ends_at__lte=at).update(
                ended_at=at, sealed=""
            )
            if changed:
                key_rows.record(SYSTEM, audit_actions.CALLER_KEY_EXPIRED, row, "expired")
                ended += 1
    return ended


def _consumer(actor: User, deployment: Deployment, draft: KeyDraft) -> Consumer:
    name = draft.name.strip()
    if not _NAME.fullmatch(name):
        raise Invalid(
            "Name the caller with lowercase letters, digits and hyphens, 40 at most.",
            fields={"name": "lowercase letters, digits and hyphens"},
        )
    existing = Consumer.objects.filter(team=deployment.team, name=name).first()
    if existing is not None:
        return existing
    if not draft.contact.strip():
        raise Invalid(
            "Enter a contact: whom to ask before the key ends.", fields={"contact": "required"}
        )
    row, _ = Consumer.objects.get_or_create(
        team=deployment.team,
        name=name,
        defaults={
            "kind": draft.kind,
            "contact": draft.contact.strip(),
            "created_by": actor,
            "created_at": clock.now(),
        },
    )
    return row


def max_days() -> int:
    """Return the longest lifetime of a caller's key in days. The platform's maximum for tokens applies too."""
    return min(MAX_DAYS, tokens.max_days())


def default_days() -> int:
    return min(DEFAULT_DAYS, max_days())


def _days(days: int | None) -> int:
    chosen, most = default_days() if days is None else days, max_days()
    if not 1 <= chosen <= most:
        raise Invalid(f"The lifetime must be 1 to {most} days.", fields={"days": f"1 to {most}"})
    return chosen
