"""Advice that a person may see: that of the own teams; of nodes, platform admins only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.db.models import Count, Max, Q, QuerySet, Sum

from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import NotFound

ANSWERED: Final = (AdviceState.SNOOZED, AdviceState.DISMISSED)
FOLLOWED: Final = (AdviceState.REQUESTED, AdviceState.APPLIED, AdviceState.CHECKED)
# Of one answer of the API.
MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of items, and dollars per month: the best open advice of each subject, because two on one
    deployment do not add up.
    """

    open: int
    answered: int
    followed: int
    month_amount: Decimal


def list_visible_to(
    actor: User, *, team_slug: str = "", states: Sequence[str] = ()
) -> QuerySet[AdviceItem]:
    """Return the advice that the actor may see, the largest saving first."""
    visible = Q(team__in=policy.visible_teams(actor))
    if policy.sees_all(actor):
        visible |= Q(team=None)
    rows = AdviceItem.objects.filter(visible)
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if states:
        rows = rows.filter(state__in=states)
    return rows.select_related("team", "deployment__team", "change", "answered_by")


def get_visible(*, actor: User, item_id: int) -> AdviceItem:
    item = list_visible_to(actor).filter(pk=item_id).first()
    if item is None:
        raise NotFound(f"Advice {item_id} does not exist, or you are not in its team.")
    return item


def totals(actor: User, *, team_slug: str = "") -> Totals:
    rows = list_visible_to(actor, team_slug=team_slug).select_related(None).order_by()
    is_open = Q(state=AdviceState.OPEN)
    counts = rows.aggregate(
        open=Count("pk", filter=is_open),
        answered=Count("pk", filter=Q(state__in=ANSWERED)),
        followed=Count("pk", filter=Q(state__in=FOLLOWED)),
    )
    best = rows.filter(is_open).values("subject").annotate(amount=Max("saving_amount"))
    amount = best.aggregate(total=Sum("amount"))["total"]
    return Totals(**counts, month_amount=amount or Decimal(0))
