"""Advice that a person may see: that of the own teams; of nodes, platform admins only."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.db.models import Q, QuerySet

from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import NotFound

FOLLOWED = (AdviceState.REQUESTED, AdviceState.APPLIED, AdviceState.CHECKED)
# Of a page and of one answer of the API.
MOST = 200


def list_visible_to(
    actor: User, *, team_slug: str = "", states: Sequence[str] = ()
) -> QuerySet[AdviceItem]:
    """The largest saving first."""
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


def total_saving(items: Sequence[AdviceItem]) -> Decimal:
    """The best advice of each subject: two on one deployment do not add up."""
    best: dict[str, Decimal] = {}
    for item in items:
        best[item.subject] = max(best.get(item.subject, Decimal(0)), item.saving_amount)
    return sum(best.values(), Decimal(0))
