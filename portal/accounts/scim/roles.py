"""Roles from the groups that a provider pushed, by the same rules as from the claims of a sign-in."""

from __future__ import annotations

from collections.abc import Iterable

from portal.accounts import four_eyes
from portal.accounts.models import (
    AccountHolder,
    Identity,
    ProvisionedGroup,
    ProvisionedPerson,
    User,
)
from portal.accounts.oidc import granted_roles, rules
from portal.accounts.oidc.providers import Provider
from portal.accounts.oidc.rules import Grant


def decide(provider: Provider, user: User) -> ProvisionedPerson | None:
    """Return the person's row if groups decide about roles instead of claims: if the provider pushes groups, a
    sign-in that says nothing of them must not take roles away.
    """
    if not ProvisionedGroup.objects.filter(provider=provider.name).exists():
        return None
    rows = ProvisionedPerson.objects.filter(provider=provider.name, user=user, deleted_at=None)
    return rows.first()


def grant_by_groups(provider: Provider, person: ProvisionedPerson) -> Grant:
    """Return what the rules on the claim `groups` give, matched by the name of each group and by its identifier."""
    names = person.groups.values_list("display_name", "external_id")
    values = sorted({text for pair in names for text in pair if text})
    return rules.grant(provider.rules, {"groups": values})


def apply(provider: Provider, people: Iterable[ProvisionedPerson]) -> None:
    """Apply the roles of these people. Call inside a transaction; they are locked in the order of their accounts."""
    for person in sorted(people, key=lambda row: row.user_id):
        if decide(provider, person.user) is None:
            continue
        user = User.objects.select_for_update().get(pk=person.user_id)
        granted = grant_by_groups(provider, person)
        reason = f"groups of {provider.label}"
        has_role = granted_roles.apply_roles(user, provider, granted, {provider.name}, reason)
        identity = Identity.objects.filter(user=user, issuer=provider.issuer).first()
        givers = [row for row in (person, identity) if row is not None]
        is_admin = granted.is_platform_admin
        if granted_roles.apply_admin(user, givers, is_admin=is_admin, reason=reason) or has_role:
            record_holder(provider, user)


def record_holder(provider: Provider, user: User) -> None:
    """Record the provider's token as a holder. A provisioning changes thousands of accounts: platform admins are
    notified of its token, and nobody of each account.
    """
    four_eyes.record(
        account=user,
        holder_id=provider.scim_token_by,
        means=AccountHolder.Means.SCIM,
        is_notified=False,
    )
