"""Sigstore trust roots: add, replace when they rotate, remove. For platform admins."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.attestations.domain import trust_roots
from deployments.attestations.domain.trust_roots import MOST_BYTES, Instance, TrustRootInvalid
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.gateways import sigstore_verifier
from deployments.attestations.selectors import trust_roots as views
from deployments.attestations.services import trust
from deployments.models import Attestation, TrustRoot
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.audit import trail
from portal.core import clock, documents
from portal.core.documents import Bounds, UnreadableDocument
from portal.core.errors import Conflict, Invalid

_BOUNDS: Final = Bounds(most_bytes=MOST_BYTES, most_depth=12, most_values=5_000)


def add(*, actor: User, name: str, document: str) -> TrustRoot:
    """Add a trust root from a trusted_root.json. It vouches for nothing until an identity is trusted under it."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    trust.check_name(name)
    row = TrustRoot(name=name.strip(), created_by=actor, created_at=clock.now(), **_read(document))
    with transaction.atomic():
        trust.insert(row, f"There is already a trust root called “{row.name}”.")
        trail.record(actor=actor, action=audit_actions.ROOT_ADDED, obj=row, after=_values(row))
    return row


def replace(*, actor: User, root_id: int, document: str) -> TrustRoot:
    """Replace the document of a trust root. Its identities stay; their signatures count again once verified with
    the new document.
    """
    policy.require_platform_admin(actor)
    step_up.require(actor)
    row = views.get_root(root_id)
    before, at = _values(row), clock.now()
    for name, value in _read(document).items():
        setattr(row, name, value)
    row.replaced_at = at
    with transaction.atomic():
        changed = TrustRoot.objects.filter(pk=row.pk, removed_at=None).update(
            document=row.document, sha256=row.sha256, contents=row.contents, replaced_at=at
        )
        if not changed:
            raise Conflict(f"{row.name} was removed.", code="already_removed")
        trail.record(
            actor=actor,
            action=audit_actions.ROOT_REPLACED,
            obj=row,
            before=before,
            after=_values(row),
        )
        # An authority that the new document lacks vouches for nothing, from now on.
        signed = Attestation.objects.filter(signer__root=row, state=AttestationState.TRUSTED)
        signed.update(state=AttestationState.PENDING)
        trust.verify_again(None)
    return row


def remove(*, actor: User, root_id: int) -> None:
    """Remove a trust root and the identities that are trusted under it. Their signatures no longer count, at once."""
    policy.require_platform_admin(actor)
    row = views.get_root(root_id)
    with transaction.atomic():
        changed = TrustRoot.objects.filter(pk=row.pk, removed_at=None).update(
            removed_at=clock.now()
        )
        if not changed:
            raise Conflict(f"{row.name} was already removed.", code="already_removed")
        for signer in views.identities_of(row):
            trust.remove_signer(actor=actor, signer_id=signer.pk)
        trail.record(actor=actor, action=audit_actions.ROOT_REMOVED, obj=row, before=_values(row))


def _read(document: str) -> dict[str, Any]:
    """Read the columns of the row from a document. Raises Invalid."""
    try:
        content = documents.read_json(document, _BOUNDS)
        instances = trust_roots.read(content)
        sigstore_verifier.check_root(content)
    except (TrustRootInvalid, UnreadableDocument) as error:
        raise Invalid(str(error), fields={"document": str(error)}) from error
    return {
        "document": document,
        "sha256": hashlib.sha256(document.encode()).hexdigest(),
        "contents": [_row_of(one) for one in instances],
    }


def _row_of(instance: Instance) -> dict[str, str | None]:
    values = asdict(instance)
    return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in values.items()}


def _values(row: TrustRoot) -> dict[str, Any]:
    return {"sha256": row.sha256, "contents": row.contents}
