"""Who counts as one person where two are required: the only place that decides it.

Whoever made an invitation, a password link, a provider connection or a SCIM token, removed a second factor or
was shown a token of a service account could be acting as the account that it let in. For `HELD_FOR` both
count as one person, and so does everyone along a chain of such accounts.

Accounts that one SCIM token provisioned count as its maker, not as each other: they sign in with the
provider only, and a company's first provisioning would leave nobody to approve anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import F, Q, Value

from portal.accounts.models import HELD_FOR, AccountHolder, ApiToken, User
from portal.core import clock
from portal.core.wakeups import wake

# More than anybody reads; a provisioning has thousands.
_MOST: Final = 20
_SERVICE: Final = "service account"


class _Hold(NamedTuple):
    account: int
    holder: int
    means: str

    @property
    def is_direct(self) -> bool:
        return self.means != AccountHolder.Means.SCIM


def record(
    *, account: User, holder_id: int | None, means: AccountHolder.Means, is_notified: bool = True
) -> None:
    """Count both as one person from now on. Inside the transaction of what the holder made."""
    if holder_id is None or holder_id == account.pk:
        return
    at = clock.now()
    AccountHolder.objects.update_or_create(
        account=account,
        holder_id=holder_id,
        means=means,
        defaults={"at": at, "next_check_at": at if is_notified else None},
    )
    if is_notified:
        wake("notifications.mail_links")


def list_counterparts(user: User) -> list[AccountHolder]:
    """List who gave this person access, and to whom they gave it, while it counts: the newest of them."""
    rows = AccountHolder.objects.filter(Q(account=user) | Q(holder=user), at__gt=_since())
    return list(rows.select_related("account", "holder").order_by("-at", "-id")[:_MOST])


def one_person_with(user_id: int | None) -> frozenset[int]:
    """Return the ids of all accounts that count as one person with this one, itself included."""
    return frozenset() if user_id is None else map_counterparts([user_id])[user_id]


def explain(other: str = "requester") -> str:
    """Explain why somebody counts as one person with the `other`: the first half of each refusal."""
    return (
        f"You count as one person with the {other}: in the last 30 days one of you invited the other, made a password "
        "link, removed a second factor, connected a sign-in provider, provisioned the account, or created or "
        "rotated a token of the service account."
    )


def map_counterparts(user_ids: Iterable[int]) -> Mapping[int, frozenset[int]]:
    """Return `one_person_with` for several accounts, in as many queries as for one."""
    ids = frozenset(user_ids)
    holds = _neighbourhood(ids)
    return {user_id: _one_person(user_id, holds) for user_id in ids}


def _one_person(user_id: int, holds: Collection[_Hold]) -> frozenset[int]:
    """Return the accounts of which somebody could be acting as both: found up to the holders, and down again."""
    direct = [hold for hold in holds if hold.is_direct]
    by_anything = _follow({user_id}, _holders_of(holds))
    by_hand = _follow({user_id}, _holders_of(direct))
    return _follow(by_hand, _accounts_of(holds)) | _follow(by_anything, _accounts_of(direct))


def _neighbourhood(ids: frozenset[int]) -> set[_Hold]:
    """Return all holds that lead up from these accounts, and from there down; one query if there are none."""
    if not _read(Q(account__in=ids) | Q(holder__in=ids), Q(user__in=ids) | Q(made_by__in=ids)):
        return set()
    above = _walk(ids, _read_holders, lambda hold: hold.holder)
    by_anything = _follow(ids, _holders_of(above))
    by_hand = _follow(ids, _holders_of([hold for hold in above if hold.is_direct]))
    below = _walk(by_hand, _read_accounts, lambda hold: hold.account)
    return above | below | _walk(by_anything, _read_direct_accounts, lambda hold: hold.account)


def _walk(
    start: Collection[int],
    read: Callable[[Collection[int]], set[_Hold]],
    end: Callable[[_Hold], int],
) -> set[_Hold]:
    found: set[_Hold] = set()
    reached, new = set(start), frozenset(start)
    while new:
        rows = read(new)
        found |= rows
        new = frozenset(map(end, rows)) - reached
        reached |= new
    return found


def _read_holders(ids: Collection[int]) -> set[_Hold]:
    return _read(Q(account__in=ids), Q(user__in=ids))


def _read_accounts(ids: Collection[int]) -> set[_Hold]:
    return _read(Q(holder__in=ids), Q(made_by__in=ids))


def _read_direct_accounts(ids: Collection[int]) -> set[_Hold]:
    return _read(Q(holder__in=ids) & ~Q(means=AccountHolder.Means.SCIM), Q(made_by__in=ids))


def _read(holds: Q, tokens: Q) -> set[_Hold]:
    """Read the holds of the last weeks, and service accounts' tokens that worked in them."""
    since = _since()
    made = AccountHolder.objects.filter(holds, at__gt=since).order_by()
    shown = (
        ApiToken.objects.filter(tokens, made_by__isnull=False, expires_at__gt=since)
        .exclude(revoked_at__lte=since)
        .exclude(made_by=F("user"))
        .order_by()
    )
    rows = made.values_list("account", "holder", "means").union(
        shown.values_list("user", "made_by", Value(_SERVICE))
    )
    return {_Hold(*row) for row in rows}


def _since() -> datetime:
    return clock.now() - HELD_FOR


def _follow(start: Iterable[int], step: Mapping[int, Collection[int]]) -> frozenset[int]:
    reached, waiting = set(start), list(start)
    while waiting:
        new = set(step.get(waiting.pop(), ())) - reached
        reached |= new
        waiting.extend(new)
    return frozenset(reached)


def _holders_of(holds: Iterable[_Hold]) -> Mapping[int, Collection[int]]:
    step: dict[int, set[int]] = defaultdict(set)
    for hold in holds:
        step[hold.account].add(hold.holder)
    return step


def _accounts_of(holds: Iterable[_Hold]) -> Mapping[int, Collection[int]]:
    step: dict[int, set[int]] = defaultdict(set)
    for hold in holds:
        step[hold.holder].add(hold.account)
    return step
