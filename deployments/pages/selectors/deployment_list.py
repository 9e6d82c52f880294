"""The deployments table: search, filter, sort and paging, all of it in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from deployments.models import Deployment, DeploymentEvent, Revision
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState
from portal.accounts.policy import Actor

PAGE_SIZE = 25
SORTS = {
    "name": ("name", "pk"),
    "-name": ("-name", "-pk"),
    "team": ("team__slug", "name"),
    "-team": ("-team__slug", "name"),
    "state": ("state", "name"),
    "-state": ("-state", "name"),
    "changed": ("changed_at", "pk"),
    "-changed": ("-changed_at", "-pk"),
}
DEFAULT_SORT = "name"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the address asks for; what it cannot mean falls back to the default."""

    text: str = ""
    state: str = ""
    cluster: str = ""
    sort: str = DEFAULT_SORT
    page: int = 1

    @classmethod
    def read(cls, params: Mapping[str, str]) -> ListQuery:
        number = params.get("page", "1")
        sort = params.get("sort", DEFAULT_SORT)
        state = params.get("state", "")
        return cls(
            text=params.get("q", "").strip()[:80],
            state=state if state in set(DeploymentState) else "",
            cluster=params.get("cluster", "")[:40],
            sort=sort if sort in SORTS else DEFAULT_SORT,
            page=int(number) if number.isdecimal() and len(number) < 6 else 1,
        )

    @property
    def is_filtered(self) -> bool:
        return bool(self.text or self.state or self.cluster)

    def sorted_by(self, column: str) -> str:
        """The address of this list sorted by the column; a second click turns it round."""
        wanted = f"-{column}" if self.sort == column else column
        return replace(self, sort=wanted, page=1).address()

    def at_page(self, number: int) -> str:
        return replace(self, page=number).address()

    def address(self) -> str:
        named = {"q": self.text, "state": self.state, "cluster": self.cluster}
        if self.sort != DEFAULT_SORT:
            named["sort"] = self.sort
        if self.page > 1:
            named["page"] = str(self.page)
        return "?" + urlencode({key: value for key, value in named.items() if value})


def page_of(*, actor: Actor, team_slug: str | None, query: ListQuery) -> Page[Deployment]:
    """Live deployments the actor may see; a page past the end is the last one."""
    rows = visible_rows(actor=actor, team_slug=team_slug).filter(_matching(query))
    return Paginator(rows.order_by(*SORTS[query.sort]), PAGE_SIZE).get_page(query.page)


def visible_rows(*, actor: Actor, team_slug: str | None) -> QuerySet[Deployment]:
    """With everything a row shows. `changed_at` is its newest event's time."""
    newest = DeploymentEvent.objects.filter(deployment=OuterRef("pk")).order_by("-id")
    changed_at = Coalesce(Subquery(newest.values("at")[:1]), "created_at")
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return rows.annotate(changed_at=changed_at)


def _matching(query: ListQuery) -> Q:
    wanted = Q()
    if query.text:
        serves = Revision.objects.filter(
            deployment=OuterRef("pk"), version__model__name__icontains=query.text
        )
        wanted &= Q(name__icontains=query.text) | Q(Exists(serves))
    if query.state:
        wanted &= Q(state=query.state)
    if query.cluster:
        wanted &= Q(cluster__name=query.cluster)
    return wanted
