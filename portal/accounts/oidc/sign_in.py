"""A sign-in with a provider: the person, their roles by claims, and what is refused.

Accounts are never joined by e-mail or name: a provider may let anyone claim either. A person who has a
local account of the same name is refused until a platform admin connects the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from portal.accounts import usernames
from portal.accounts.local.new_accounts import CREATED
from portal.accounts.models import Identity, ProvisionedPerson, User
from portal.accounts.oidc import granted_roles, rules
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.providers import Provider
from portal.accounts.oidc.rules import ClaimsIncomplete, Grant
from portal.accounts.policy import SYSTEM
from portal.accounts.scim import roles
from portal.audit import trail
from portal.core import clock

_MAX_USERNAME: Final = 150
_MAX_EMAIL: Final = 254
_is_username = UnicodeUsernameValidator()


def sign_in(provider: Provider, claims: Mapping[str, Any]) -> User:
    """Return the person of verified claims, with the roles that these give now.

    Raises SignInRefused, and then nothing has changed.
    """
    granted = _granted(provider, claims)
    try:
        with transaction.atomic():
            identity = _identity(provider, claims)
            user = User.objects.select_for_update().get(pk=identity.user_id)
            if not user.is_active:
                raise SignInRefused(
                    "Your account is deactivated. A platform admin can reactivate it.",
                    code="deactivated",
                )
            _update_profile(user, claims)
            # A provider that got another name in the settings still takes back what it gave.
            names = {provider.name, identity.provider}
            person = roles.decide(provider, user)
            if person is not None:
                roles.apply(provider, [person])
            else:
                reason, is_admin = f"claims of {provider.label}", granted.is_platform_admin
                granted_roles.apply_roles(user, provider, granted, names, reason)
                granted_roles.apply_admin(user, [identity], is_admin=is_admin, reason=reason)
            Identity.objects.filter(pk=identity.pk).update(
                signed_in_at=clock.now(), provider=provider.name
            )
    except IntegrityError as error:
        # The same person signed in twice at once, for the first time.
        raise SignInRefused(
            "Your account has just been created by another sign-in. Sign in again.",
            code="try_again",
        ) from error
    return user


def _granted(provider: Provider, claims: Mapping[str, Any]) -> Grant:
    try:
        for claim, value in provider.required:
            if value not in rules.read_claim(claims, claim):
                raise SignInRefused(
                    f"Your account at {provider.label} may not use this portal: "
                    f"it needs {claim}={value}.",
                    code="claim_required",
                )
        return rules.grant(provider.rules, claims)
    except ClaimsIncomplete as error:
        raise SignInRefused(
            f"{provider.label} did not send all values of {error}, so your roles are not known. A platform "
            "admin can limit the claim to the groups of this portal.",
            code="claims_incomplete",
        ) from error


def _identity(provider: Provider, claims: Mapping[str, Any]) -> Identity:
    identity = Identity.objects.filter(issuer=provider.issuer, subject=claims["sub"]).first()
    if identity is not None:
        return identity
    person = _provisioned(provider, claims)
    if person is not None:
        return _identify(person.user, provider, claims, at=clock.now())
    return _create(provider, claims, at=clock.now())


def _provisioned(provider: Provider, claims: Mapping[str, Any]) -> ProvisionedPerson | None:
    """Return the person whom the provider provisioned under the identifier of this sign-in, never by name or email
    address.
    """
    external_id = claims.get(provider.provisioned_claim)
    if not isinstance(external_id, str) or not external_id:
        return None
    rows = ProvisionedPerson.objects.filter(provider=provider.name, external_id=external_id)
    person = rows.filter(deleted_at=None).select_related("user").first()
    is_free = person and not person.user.identities.filter(issuer=provider.issuer).exists()
    return person if is_free else None


def _identify(
    user: User, provider: Provider, claims: Mapping[str, Any], *, at: datetime
) -> Identity:
    return Identity.objects.create(
        user=user,
        provider=provider.name,
        issuer=provider.issuer,
        subject=claims["sub"],
        created_at=at,
    )


def _create(provider: Provider, claims: Mapping[str, Any], *, at: datetime) -> Identity:
    username = _username(provider, claims)
    _refuse_existing(provider, claims, username)
    user = User(username=username, date_joined=at)
    user.set_unusable_password()
    user.save()
    identity = _identify(user, provider, claims, at=at)
    trail.record(
        actor=SYSTEM,
        action=CREATED,
        obj=user,
        label=username,
        after={"provider": provider.name, "subject": claims["sub"]},
        reason=f"first sign-in with {provider.label}",
    )
    return identity


def _username(provider: Provider, claims: Mapping[str, Any]) -> str:
    """Raises SignInRefused for a name that cannot be one, or is the portal's own in the audit trail."""
    text = claims.get(provider.username_claim)
    username = User.normalize_username(text) if isinstance(text, str) else ""
    try:
        _is_username(username)
    except ValidationError:
        username = ""
    if not username or len(username) > _MAX_USERNAME:
        raise SignInRefused(
            f"{provider.label} sent no usable name in the claim {provider.username_claim}. A platform admin "
            "can choose another claim.",
            code="no_username",
        )
    if username.lower() == SYSTEM.name:
        raise SignInRefused(f"The name {username} is reserved.", code="name_reserved")
    if problem := usernames.problem_with(username):
        raise SignInRefused(
            f"The name {username} cannot be told from others: {problem}. A platform admin can choose another claim.",
            code="name_confusable",
        )
    return username


def _refuse_existing(provider: Provider, claims: Mapping[str, Any], username: str) -> None:
    is_taken = usernames.find_alike(username) is not None
    # Also an address that is not verified: this only refuses.
    email = claims.get("email")
    if isinstance(email, str) and email and email.isprintable():
        is_taken = is_taken or User.objects.filter(email__iexact=email).exists()
    if is_taken:
        raise SignInRefused(
            f"An account with your name, a name that looks like it, or your e-mail address exists already. If it is yours, ask a platform "
            f"admin to connect it. Your identifier at {provider.label} is {claims['sub']}.",
            code="account_exists",
        )


def _email(claims: Mapping[str, Any]) -> str:
    """Return the email address of the claims. Empty if it is invalid, too long, or the provider says that it is not
    verified.
    """
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified", True) is not True:
        return ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= _MAX_EMAIL else ""


def _update_profile(user: User, claims: Mapping[str, Any]) -> None:
    """Update name and email address from the provider. The username stays: the audit trail refers to it."""
    user.first_name, user.last_name = _names(claims)
    user.email = _email(claims) or user.email
    user.save(update_fields=["first_name", "last_name", "email"])


def _names(claims: Mapping[str, Any]) -> tuple[str, str]:
    given, family, full = (
        text if isinstance(text := claims.get(name), str) else ""
        for name in ("given_name", "family_name", "name")
    )
    if not given and not family:
        given, _, family = full.partition(" ")
    return _cut(given), _cut(family)


def _cut(text: str) -> str:
    """Cut text to what a column takes: 150 characters without control characters and halves of surrogate pairs."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:150]
