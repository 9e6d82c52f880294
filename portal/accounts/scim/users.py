"""People as a provider's SCIM client makes, changes and ends them.

An account here is never taken over by its name or address alone: one that the provider did not create or
sign in is refused as taken.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from portal.accounts import people, usernames
from portal.accounts.local.new_accounts import CREATED
from portal.accounts.models import Identity, ProvisionedPerson, User
from portal.accounts.oidc.providers import Provider
from portal.accounts.policy import SYSTEM, System
from portal.accounts.scim import roles
from portal.accounts.scim.attributes import Filter
from portal.accounts.scim.errors import invalid_value, not_found, not_unique
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock

CHANGED: Final = register("person.provisioned", "changed by provisioning the account of")
FILTERS: Final = ("username", "externalid", "id")
_COLUMNS: Final = {"username": "user_name__iexact", "externalid": "external_id", "id": "pk"}
_MAX_USERNAME: Final = 150
_is_username = UnicodeUsernameValidator()


def list_people(provider: Provider, condition: Filter | None) -> QuerySet[ProvisionedPerson]:
    rows = ProvisionedPerson.objects.filter(provider=provider.name, deleted_at=None)
    rows = rows.select_related("user").prefetch_related("groups")
    if condition is None:
        return rows
    if condition.attribute == "id" and not is_uuid(condition.value):
        return rows.none()
    return rows.filter(**{_COLUMNS[condition.attribute]: condition.value})


def get(provider: Provider, key: str) -> ProvisionedPerson:
    row = list_people(provider, Filter("id", key)).first()
    if row is None:
        raise not_found("user", key)
    return row


def create(provider: Provider, fields: Mapping[str, Any]) -> ProvisionedPerson:
    """Raises ScimError: uniqueness where the name or identifier is taken."""
    user_name = _require_user_name(fields)
    external_id = str(fields.get("external_id", ""))
    try:
        with transaction.atomic():
            row = _deleted(provider, external_id) or _new(provider, user_name, external_id)
            row.user_name, row.external_id = user_name, external_id
            row.deleted_at, row.changed_at = None, clock.now()
            row.save()
            _update_profile(provider, row.user, fields)
            _set_active(provider, row, is_active=fields.get("is_active", True))
            roles.apply(provider, [row])
    except IntegrityError as error:
        raise not_unique(f"{user_name} or its externalId exists already.") from error
    return get(provider, str(row.pk))


def change(
    provider: Provider, key: str, fields: Mapping[str, Any], *, is_whole: bool = False
) -> ProvisionedPerson:
    """Change a person. With `is_whole`, fields that the resource leaves out are emptied, except `active`, which
    stays.
    """
    if is_whole:
        _require_user_name(fields)
    try:
        with transaction.atomic():
            row = _locked(provider, key)
            row.user_name = fields.get("user_name", row.user_name) or row.user_name
            row.external_id = fields.get("external_id", "" if is_whole else row.external_id)
            row.changed_at = clock.now()
            row.save()
            _update_profile(provider, row.user, fields, is_whole=is_whole)
            _set_active(provider, row, is_active=fields.get("is_active", row.is_active))
    except IntegrityError as error:
        raise not_unique("Its userName or externalId belongs to someone else.") from error
    return get(provider, key)


def delete(provider: Provider, key: str) -> None:
    """Deactivate the account and forget it as provisioned. What the person did stays in the records."""
    with transaction.atomic():
        row = _locked(provider, key)
        _set_active(provider, row, is_active=False)
        row.groups.clear()
        roles.apply(provider, [row])
        row.deleted_at = row.changed_at = clock.now()
        row.save()


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _locked(provider: Provider, key: str) -> ProvisionedPerson:
    rows = ProvisionedPerson.objects.select_for_update(no_key=True, of=("self",))
    rows = rows.filter(provider=provider.name, deleted_at=None).select_related("user")
    row = rows.filter(pk=key).first() if is_uuid(key) else None
    if row is None:
        raise not_found("user", key)
    return row


def _require_user_name(fields: Mapping[str, Any]) -> str:
    user_name = str(fields.get("user_name", ""))
    try:
        _is_username(user_name)
    except ValidationError:
        user_name = ""
    if not user_name or len(user_name) > _MAX_USERNAME or user_name.lower() == SYSTEM.name:
        raise invalid_value("userName has 1 to 150 letters, digits and @.+-_")
    if problem := usernames.problem_with(User.normalize_username(user_name)):
        raise invalid_value(f"userName cannot be told from others: {problem}")
    return user_name


def _deleted(provider: Provider, external_id: str) -> ProvisionedPerson | None:
    """Find the same person among deleted ones, by the provider's identifier, never by a name that others may get."""
    if not external_id:
        return None
    rows = ProvisionedPerson.objects.filter(provider=provider.name, external_id=external_id)
    return rows.exclude(deleted_at=None).select_related("user").first()


def _new(provider: Provider, user_name: str, external_id: str) -> ProvisionedPerson:
    user = _signed_in_before(provider, user_name, external_id) or _account(provider, user_name)
    at = clock.now()
    return ProvisionedPerson(
        provider=provider.name, user=user, is_active=user.is_active, created_at=at, changed_at=at
    )


def _signed_in_before(provider: Provider, user_name: str, external_id: str) -> User | None:
    """Find the user who signed in with this very provider under that identifier, or under that name."""
    known = Identity.objects.filter(issuer=provider.issuer).select_related("user")
    same = Q(user__username__iexact=user_name)
    if external_id and provider.provisioned_claim == "sub":
        same |= Q(subject=external_id)
    matching = list(known.filter(same)[:2])
    return matching[0].user if len(matching) == 1 else None


def _account(provider: Provider, user_name: str) -> User:
    username = User.normalize_username(user_name)
    if usernames.find_alike(username) is not None:
        raise not_unique(
            f"An account {username}, or one that looks like it, exists here that {provider.label} did not create. A platform admin can "
            "connect the two on the person's page."
        )
    user = User(username=username, date_joined=clock.now())
    user.set_unusable_password()
    user.save()
    roles.record_holder(provider, user)
    trail.record(
        actor=actor_of(provider),
        action=CREATED,
        obj=user,
        label=username,
        after={"provider": provider.name},
        reason=f"provisioned by {provider.label}",
    )
    return user


def actor_of(provider: Provider) -> System:
    """Return the provider's actor for the audit trail. No person can have that name: it has a space."""
    return System(f"scim {provider.name}")


def _update_profile(
    provider: Provider, user: User, fields: Mapping[str, Any], *, is_whole: bool = False
) -> None:
    before = _profile(user)
    given, family = fields.get("given_name"), fields.get("family_name")
    if given is None and family is None and fields.get("display_name"):
        given, _, family = str(fields["display_name"]).partition(" ")
    email = fields.get("email", "" if is_whole else None)
    user.first_name = user.first_name if given is None else given[:150]
    user.last_name = user.last_name if family is None else family[:150]
    user.email = user.email if email is None else _email(email)
    after = _profile(user)
    if after == before:
        return
    user.save(update_fields=[*after])
    if before["email"] != after["email"]:
        # A link for a new password goes there.
        roles.record_holder(provider, user)
    trail.record(
        actor=actor_of(provider),
        action=CHANGED,
        obj=user,
        label=user.username,
        before=before,
        after=after,
        reason=f"provisioned by {provider.label}",
    )


def _profile(user: User) -> dict[str, str]:
    return {"first_name": user.first_name, "last_name": user.last_name, "email": user.email}


def _email(text: str) -> str:
    if not text:
        return ""
    try:
        validate_email(text)
    except ValidationError as error:
        raise invalid_value("emails has an address that is none.") from error
    return text


def _set_active(provider: Provider, row: ProvisionedPerson, *, is_active: bool) -> None:
    """Apply only what the provider changed: an account that an admin deactivated here stays so."""
    user, reason = row.user, f"provisioning by {provider.label}"
    actor = actor_of(provider)
    if is_active == row.is_active:
        return
    if is_active and not user.is_active:
        people.reactivate(actor=actor, username=user.username, reason=reason)
        roles.record_holder(provider, user)
    if not is_active and user.is_active:
        people.deactivate(actor=actor, username=user.username, reason=reason)
    user.is_active = row.is_active = is_active
    row.save(update_fields=["is_active"])
