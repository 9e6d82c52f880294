"""Add and renew callers that an identity provider's token identifies by a claim."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from datetime import timedelta

from django.db import IntegrityError, transaction

from deployments.callers.selectors import token_issuers
from deployments.callers.services import token_limits
from deployments.callers.services.issuing import KeyLimits, NewKey
from deployments.callers.services.token_issuers import LONGEST_VALUE, is_value
from deployments.models import CallerKey, Consumer, Deployment, KeyTokens, TokenIssuer
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict, Invalid


def find_issuer(deployment: Deployment, name: str, value: str) -> TokenIssuer | None:
    """Find the issuer of a caller with a token. None if neither name nor value is given, because a key is meant.
    Raises Invalid.
    """
    if not name and not value:
        return None
    row = token_issuers.list_for_cluster(deployment.cluster_id).filter(name=name).first()
    if row is None:
        message = (
            f"No token issuer {name or '(empty)'} is registered for {deployment.cluster.name}."
        )
        raise Invalid(message, fields={"token_issuer": "unknown"})
    if not is_value(value):
        message = f"Enter the value of {row.claim} in the caller's tokens, without spaces, {LONGEST_VALUE} characters at most."
        raise Invalid(message, fields={"claim_value": "the value of the claim"})
    return row


def admit_caller(
    actor: User,
    deployment: Deployment,
    consumer: Consumer,
    issuer: TokenIssuer,
    value: str,
    *,
    days: int,
    limits: KeyLimits,
) -> NewKey:
    """Let the owner of a claim value call the deployment. Call inside a transaction.

    There is no key: the caller fetches tokens from the provider. Raises Conflict if the value is already listed.
    """
    at = clock.now()
    row = CallerKey(
        consumer=consumer,
        deployment=deployment,
        token_issuer=issuer,
        claim_value=value,
        # There is no key; a random value satisfies the unique column.
        sha256=hashlib.sha256(secrets.token_bytes(32)).hexdigest(),
        **asdict(limits),
        created_by=actor,
        created_at=at,
        ends_at=at + timedelta(days=days),
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"{value} of {issuer.name} can already call {deployment}.", code="already_listed"
        ) from error
    return NewKey(row, "")


def renew(actor: User, old: CallerKey, issuer: TokenIssuer, *, days: int) -> NewKey:
    """Extend the access without a gap; usage against its limits carries over. Call inside a
    transaction.
    """
    ended = CallerKey.objects.filter(pk=old.pk, ended_at=None).update(
        ended_at=clock.now(), rotated_at=clock.now()
    )
    if not ended:
        raise Conflict(f"The access of {old} has already ended.", code="key_ended")
    made = admit_caller(
        actor,
        old.deployment,
        old.consumer,
        issuer,
        old.claim_value,
        days=days,
        limits=KeyLimits.from_key(old),
    )
    KeyTokens.objects.filter(key=old).update(key=made.row)
    token_limits.reconsider(made.row)
    return made
