"""Groups that a provider's SCIM client pushes. Each change sets the roles of the people whom it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from portal.accounts.models import ProvisionedGroup, ProvisionedPerson
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import roles
from portal.accounts.scim.attributes import Filter, MemberChange
from portal.accounts.scim.errors import invalid_value, not_found, not_unique
from portal.accounts.scim.users import is_uuid
from portal.core import clock

FILTERS: Final = ("displayname", "externalid", "id")
_COLUMNS: Final = {"displayname": "display_name__iexact", "externalid": "external_id", "id": "pk"}


def list_groups(provider: Provider, condition: Filter | None) -> QuerySet[ProvisionedGroup]:
    rows = ProvisionedGroup.objects.filter(provider=provider.name)
    if condition is None:
        return rows
    if condition.attribute == "id" and not is_uuid(condition.value):
        return rows.none()
    return rows.filter(**{_COLUMNS[condition.attribute]: condition.value})


def get(provider: Provider, key: str) -> ProvisionedGroup:
    row = list_groups(provider, Filter("id", key)).first()
    if row is None:
        raise not_found("group", key)
    return row


def create(
    provider: Provider, texts: Mapping[str, str], member_ids: Sequence[str]
) -> ProvisionedGroup:
    _require_name(texts)
    at = clock.now()
    row = ProvisionedGroup(provider=provider.name, created_at=at)
    is_first = not ProvisionedGroup.objects.filter(provider=provider.name).exists()
    _save(provider, row, texts, [MemberChange("replace", tuple(member_ids))], is_first=is_first)
    return row


def replace(
    provider: Provider, key: str, texts: Mapping[str, str], member_ids: Sequence[str]
) -> ProvisionedGroup:
    _require_name(texts)
    row = get(provider, key)
    whole = {"external_id": "", **texts}
    _save(provider, row, whole, [MemberChange("replace", tuple(member_ids))])
    return row


def change(
    provider: Provider, key: str, texts: Mapping[str, str], members: Sequence[MemberChange]
) -> ProvisionedGroup:
    if "display_name" in texts:
        _require_name(texts)
    row = get(provider, key)
    _save(provider, row, texts, members)
    return row


def delete(provider: Provider, key: str) -> None:
    """Delete a group. Its members lose the roles that it gave."""
    with transaction.atomic():
        row = _locked(get(provider, key))
        people = list(row.members.select_related("user"))
        row.members.clear()
        roles.apply(provider, people)
        row.delete()


def _save(
    provider: Provider,
    row: ProvisionedGroup,
    texts: Mapping[str, str],
    members: Sequence[MemberChange],
    *,
    is_first: bool = False,
) -> None:
    """Save a group and apply the roles of its members. From the first group on, groups decide about everyone:
    people outside it lose roles of claims.
    """
    try:
        with transaction.atomic():
            _write(row, texts)
            before = set(row.members.values_list("pk", flat=True))
            for change_ in members:
                _change_members(provider, row, change_)
            after = set(row.members.values_list("pk", flat=True))
            concerned = before | after if texts else before ^ after
            people = ProvisionedPerson.objects.filter(provider=provider.name, deleted_at=None)
            people = people if is_first else people.filter(pk__in=concerned)
            roles.apply(provider, people.select_related("user"))
    except IntegrityError as error:
        raise not_unique(f"There is already a group {row.display_name}.") from error


def _write(row: ProvisionedGroup, texts: Mapping[str, str]) -> None:
    if not row._state.adding:
        _locked(row)
    row.display_name = texts.get("display_name", row.display_name)
    row.external_id = texts.get("external_id", row.external_id)
    row.changed_at = clock.now()
    row.save()


def _locked(row: ProvisionedGroup) -> ProvisionedGroup:
    rows = ProvisionedGroup.objects.select_for_update(no_key=True)
    locked = rows.filter(pk=row.pk).first()
    if locked is None:
        raise not_found("group", str(row.pk))
    return locked


def _change_members(provider: Provider, row: ProvisionedGroup, change_: MemberChange) -> None:
    if change_.is_all:
        row.members.clear()
        return
    keys = [key for key in change_.ids if is_uuid(key)]
    rows = ProvisionedPerson.objects.filter(provider=provider.name, deleted_at=None, pk__in=keys)
    people = list(rows)
    # Removing somebody who has gone already is done.
    if change_.kind != "remove" and len(people) != len(change_.ids):
        known = {str(person.pk) for person in people}
        missing = next(key for key in change_.ids if key.lower() not in known)
        raise invalid_value(f"There is no user {missing}.")
    operations: dict[str, Any] = {
        "add": lambda: row.members.add(*people),
        "remove": lambda: row.members.remove(*people),
        "replace": lambda: row.members.set(people),
    }
    operations[change_.kind]()


def _require_name(texts: Mapping[str, str]) -> None:
    if not texts.get("display_name"):
        raise invalid_value("displayName is required.")
