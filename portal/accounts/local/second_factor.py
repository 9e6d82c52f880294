"""The second factor of local accounts: an authenticator app or passkeys, and recovery codes for the day they
are lost.
"""

from __future__ import annotations

import secrets
from typing import Final

from django.conf import settings
from django.db import transaction

from portal.accounts import four_eyes, people, roles, sign_in_events
from portal.accounts.local import step_up, totp
from portal.accounts.local.models import Authenticator, Passkey, RecoveryCode
from portal.accounts.local.password_checks import TooManyAttempts
from portal.accounts.local.sessions import LOCAL
from portal.accounts.models import AccountHolder, User
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock, rate_limits, sealing
from portal.core.errors import Conflict, Invalid
from portal.core.rate_limits import Limit

ADDED: Final = register("second_factor.added", "added an authenticator app to")
REMOVED: Final = register("second_factor.removed", "removed the authenticator app of")
REMOVED_BY_ADMIN: Final = register(
    "second_factor.removed_by_admin", "removed the second factors of"
)
CODES_MADE: Final = register("second_factor.codes_made", "made new recovery codes for")
CODE_USED: Final = register("second_factor.code_used", "used a recovery code of")
# Three of a million codes are valid at a time: 50 guesses a day find one in 18 years, on average.
OF_PERSON: Final = Limit("codes of a person", 10, 15 * 60)
OF_DAY: Final = Limit("codes of a person in a day", 50, 24 * 3600)
RECOVERY_CODES: Final = 10
_KEYS: Final = "authenticator keys"
_CODES: Final = "recovery codes"
# Without letters and digits that look alike.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LENGTH: Final = 12


def is_on(user: User) -> bool:
    """Whether signing in takes more than the password."""
    return has_app(user) or Passkey.objects.filter(user=user).exists()


def has_app(user: User) -> bool:
    return Authenticator.objects.filter(user=user).exclude(confirmed_at=None).exists()


def is_missing(user: User, *, method: str) -> bool:
    """Whether the platform requires one of this person, who has none and signed in with a password alone."""
    return (
        settings.SLIPWAY_REQUIRE_SECOND_FACTOR
        and method == LOCAL
        and user.has_usable_password()
        and roles.is_lead(user)
        and not is_on(user)
    )


def codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def start(*, actor: User) -> None:
    """Make a key, which `pending_key` shows until a code of it was entered."""
    if not actor.has_usable_password():
        raise Conflict(
            "You sign in with a provider. Set up a second factor there.", code="no_password"
        )
    step_up.require(actor)
    with transaction.atomic():
        if has_app(actor):
            raise Conflict(
                "You have an authenticator app already. Remove it first.", code="factor_exists"
            )
        Authenticator.objects.update_or_create(
            user=actor,
            defaults={
                "sealed_key": sealing.seal(_KEYS, totp.new_key()),
                "created_at": clock.now(),
                "confirmed_at": None,
                "last_step": 0,
            },
        )


def pending_key(user: User) -> str:
    """Return the key that waits for confirmation. Empty if there is none: a confirmed key is shown to nobody."""
    row = Authenticator.objects.filter(user=user, confirmed_at=None).first()
    return sealing.unseal(_KEYS, row.sealed_key) if row else ""


def confirm(*, actor: User, code: str) -> list[str]:
    """Turn the second factor on with a first code. The recovery codes, which are shown once."""
    _count(actor)
    row = Authenticator.objects.filter(user=actor, confirmed_at=None).first()
    if row is None:
        raise Conflict("There is no authenticator app to confirm. Begin again.", code="no_pending")
    step = _step_of(row, code)
    if step is None:
        raise _wrong()
    with transaction.atomic():
        rows = Authenticator.objects.filter(pk=row.pk, confirmed_at=None)
        if not rows.update(confirmed_at=clock.now(), last_step=step):
            raise Conflict("It was confirmed in another window.", code="confirmed_already")
        codes = _new_codes(actor)
        _record(actor, actor, ADDED)
    _reset(actor)
    return codes


def require(user: User, code: str, *, address: str) -> None:
    """Accept a code of the app or a recovery code, each once. Raises Invalid and TooManyAttempts."""
    _count(user)
    text = "".join(code.split()).lower().replace("-", "")
    is_right = _use_recovery(user, text) if len(text) == _CODE_LENGTH else _use_code(user, text)
    if not is_right:
        sign_in_events.record_refusal(
            user.username, reason=sign_in_events.Reason.CODE, address=address
        )
        raise _wrong()
    _reset(user)


def make_codes(*, actor: User) -> list[str]:
    """Create new recovery codes, once the caller has checked the password. Earlier ones stop working."""
    if not is_on(actor):
        raise Conflict("Set up an authenticator app or a passkey first.", code="no_factor")
    with transaction.atomic():
        codes = _new_codes(actor)
        _record(actor, actor, CODES_MADE)
    return codes


def remove(*, actor: User) -> None:
    """Remove the second factor, once the caller has checked the password."""
    with transaction.atomic():
        _remove(actor, actor, "")


def remove_factors(*, actor: Actor, username: str, reason: str = "") -> None:
    """Remove all of a person's factors, for platform admins, if phone, passkeys and recovery codes are lost."""
    person = people.get(actor=actor, username=username)
    step_up.require(actor)
    with transaction.atomic():
        apps, _ = Authenticator.objects.filter(user=person).delete()
        passkeys, _ = Passkey.objects.filter(user=person).delete()
        if not apps + passkeys:
            raise Conflict(f"{username} has no second factor.", code="no_factor")
        end_codes_without_factor(person)
        four_eyes.record(
            account=person,
            holder_id=actor.pk if isinstance(actor, User) else None,
            means=AccountHolder.Means.SECOND_FACTOR,
        )
        trail.record(
            actor=actor,
            action=REMOVED_BY_ADMIN,
            obj=person,
            label=username,
            before={"apps": apps, "passkeys": passkeys},
            reason=reason,
        )


def first_codes(user: User) -> list[str]:
    """Create recovery codes for somebody who has none left. Empty otherwise. Call inside a transaction."""
    return [] if codes_left(user) else _new_codes(user)


def end_codes_without_factor(user: User) -> None:
    """End the recovery codes if no factor is left. Call inside the transaction that removes a factor."""
    if not is_on(user):
        RecoveryCode.objects.filter(user=user).delete()


def _remove(actor: Actor, person: User, reason: str) -> None:
    count, _ = Authenticator.objects.filter(user=person).delete()
    if not count:
        raise Conflict(f"{person.username} has no authenticator app.", code="no_factor")
    end_codes_without_factor(person)
    _record(actor, person, REMOVED, reason=reason)


def _use_code(user: User, code: str) -> bool:
    """Use a code of the app. The step is written by compare-and-swap, so that of two sign-ins with one code the
    first wins.
    """
    row = Authenticator.objects.filter(user=user).exclude(confirmed_at=None).first()
    step = _step_of(row, code) if row else None
    if row is None or step is None:
        return False
    rows = Authenticator.objects.filter(pk=row.pk, last_step=row.last_step)
    return bool(rows.update(last_step=step))


def _use_recovery(user: User, code: str) -> bool:
    with transaction.atomic():
        rows = RecoveryCode.objects.filter(user=user, digest=_digest(code), used_at=None)
        if not is_on(user) or not rows.update(used_at=clock.now()):
            return False
        trail.record(
            actor=user,
            action=CODE_USED,
            obj=user,
            label=user.username,
            after={"codes_left": codes_left(user)},
        )
    return True


def _step_of(row: Authenticator, code: str) -> int | None:
    key = sealing.unseal(_KEYS, row.sealed_key)
    seconds = int(clock.now().timestamp())
    return totp.find_step(key, code, seconds=seconds, after=row.last_step)


def _new_codes(user: User) -> list[str]:
    RecoveryCode.objects.filter(user=user).delete()
    codes = [
        "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
        for _ in range(RECOVERY_CODES)
    ]
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=_digest(code)) for code in codes
    )
    return ["-".join(code[i : i + 4] for i in range(0, _CODE_LENGTH, 4)) for code in codes]


def _digest(code: str) -> str:
    return sealing.digest(_CODES, code).hex()


def _count(user: User) -> None:
    for limit in (OF_PERSON, OF_DAY):
        if not rate_limits.count(limit, str(user.pk)):
            minutes = -(-limit.seconds_left() // 60)
            raise TooManyAttempts(
                f"Too many wrong codes. Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}."
            )


def _reset(user: User) -> None:
    for limit in (OF_PERSON, OF_DAY):
        rate_limits.reset(limit, str(user.pk))


def _wrong() -> Invalid:
    return Invalid(
        "This code is not valid now. Enter the code that the app shows.",
        fields={"code": "not valid now"},
    )


def _record(actor: Actor, person: User, action: AuditAction, *, reason: str = "") -> None:
    trail.record(actor=actor, action=action, obj=person, label=person.username, reason=reason)
