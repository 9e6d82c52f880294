"""Passkeys of local accounts (WebAuthn): a second factor at sign-in, and the confirmation before decisions.

A browser signs a challenge of this site only, so a copied page gets nothing. The only user of fido2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from portal.accounts import sign_in_events
from portal.accounts.local import second_factor
from portal.accounts.local.models import Passkey
from portal.accounts.models import User
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

ADDED: Final = register("passkey.added", "added a passkey to")
REMOVED: Final = register("passkey.removed", "removed a passkey of")
MOST: Final = 20
LONGEST_NAME: Final = 60
_LONGEST_ANSWER: Final = 20_000


@dataclass(frozen=True, slots=True)
class Site:
    """The site as the browser knows it: a credential works on this host, and a response counts from this origin."""

    origin: str

    @property
    def host(self) -> str:
        return urlsplit(self.origin).hostname or ""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge to create or prove a passkey. `options` go to the browser; `state` stays in the session, for one
    answer.
    """

    options: Mapping[str, Any]
    state: Mapping[str, Any]


def list_passkeys(user: User) -> list[Passkey]:
    return list(Passkey.objects.filter(user=user))


def begin_adding(*, actor: User, site: Site) -> Challenge:
    _require_local(actor)
    known = [_credential(row) for row in list_passkeys(actor)]
    if len(known) >= MOST:
        raise Conflict(f"You have {MOST} passkeys. Remove one first.", code="too_many")
    entity = PublicKeyCredentialUserEntity(
        id=f"slipway-{actor.pk}".encode(), name=actor.username, display_name=actor.display_name
    )
    options, state = _server(site).register_begin(
        entity,
        known,
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return Challenge(dict(options)["publicKey"], state)


def add(
    *, actor: User, site: Site, state: Mapping[str, Any] | None, answer: str, name: str
) -> list[str]:
    """Add a passkey, once the caller has checked the password. Returns recovery codes, shown once, if there are
    none yet.
    """
    _require_local(actor)
    title = name.strip()
    if not 1 <= len(title) <= LONGEST_NAME or not title.isprintable():
        raise Invalid("Name the passkey.", fields={"name": f"1 to {LONGEST_NAME} characters"})
    try:
        data = _server(site).register_complete(_required(state), _read(answer))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _refused() from error
    credential = data.credential_data
    if credential is None:
        raise _refused()
    row = Passkey(
        user=actor,
        name=title,
        credential_id=websafe_encode(credential.credential_id),
        credential=bytes(credential),
        sign_count=data.counter,
        created_at=clock.now(),
    )
    try:
        with transaction.atomic():
            row.save()
            trail.record(
                actor=actor, action=ADDED, obj=actor, label=actor.username, after={"name": title}
            )
            return second_factor.first_codes(actor)
    except IntegrityError as error:
        raise Conflict("This passkey is registered already.", code="passkey_exists") from error


def begin_proof(user: User, site: Site) -> Challenge | None:
    """Begin a proof with one of the user's passkeys. None if they have none."""
    known = [_credential(row) for row in list_passkeys(user)]
    if not known:
        return None
    options, state = _server(site).authenticate_begin(
        known, user_verification=UserVerificationRequirement.REQUIRED
    )
    return Challenge(dict(options)["publicKey"], state)


def require(
    user: User, *, site: Site, state: Mapping[str, Any] | None, answer: str, address: str
) -> None:
    """Raises Invalid for an answer that proves nothing. `state` counts for one answer: the caller has
    taken it out of the session.
    """
    try:
        count, row = _proven(user, site, state, answer)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        sign_in_events.record_refusal(
            user.username, reason=sign_in_events.Reason.PASSKEY, address=address
        )
        raise _refused() from error
    # Of two answers with one count the first wins: a second authenticator has a copy of the key.
    rows = Passkey.objects.filter(pk=row.pk, sign_count=row.sign_count)
    if not rows.update(sign_count=count, last_used_at=clock.now()):
        raise _refused()


def remove(*, actor: User, passkey_id: int) -> None:
    """Remove a passkey, once the caller has checked the password. Recovery codes end with the last factor."""
    with transaction.atomic():
        row = Passkey.objects.select_for_update().filter(user=actor, pk=passkey_id).first()
        if row is None:
            raise NotFound(f"You have no passkey {passkey_id}.")
        row.delete()
        second_factor.end_codes_without_factor(actor)
        trail.record(
            actor=actor, action=REMOVED, obj=actor, label=actor.username, before={"name": row.name}
        )


def _proven(
    user: User, site: Site, state: Mapping[str, Any] | None, answer: str
) -> tuple[int, Passkey]:
    """Return the new count and the passkey. Raises ValueError and its like."""
    rows = {row.credential_id: row for row in list_passkeys(user)}
    response = AuthenticationResponse.from_dict(_read(answer))
    known = [_credential(row) for row in rows.values()]
    credential = _server(site).authenticate_complete(_required(state), known, response)
    row = rows[websafe_encode(credential.credential_id)]
    count = response.response.authenticator_data.counter
    if count <= row.sign_count and (count or row.sign_count):
        raise ValueError("the count did not rise: the passkey was copied")
    return count, row


def _server(site: Site) -> Fido2Server:
    entity = PublicKeyCredentialRpEntity(id=site.host, name="Slipway")
    return Fido2Server(entity, verify_origin=lambda origin: origin == site.origin)


def _credential(row: Passkey) -> AttestedCredentialData:
    return AttestedCredentialData(bytes(row.credential))


def _read(answer: str) -> Mapping[str, Any]:
    if len(answer) > _LONGEST_ANSWER:
        raise ValueError("too long")
    read = json.loads(answer)
    if not isinstance(read, Mapping):
        raise TypeError("no object")
    # Refused here, so that an identifier that is no text never reaches the comparison.
    websafe_decode(read["id"])
    return read


def _required(state: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not state:
        raise ValueError("no challenge is open")
    return state


def _require_local(actor: User) -> None:
    if not actor.has_usable_password():
        raise Conflict("You sign in with a provider. Add a passkey there.", code="no_password")


def _refused() -> Invalid:
    return Invalid("The passkey was not accepted. Try again.", fields={"passkey": "not accepted"})
