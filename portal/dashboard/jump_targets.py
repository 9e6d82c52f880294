"""Where the search field can lead: pages, models and deployments that the person may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from deployments.models import Model
from deployments.pipelines.selectors import pipelines
from deployments.serving.selectors import deployments
from portal.accounts import policy
from portal.accounts.models import User

_AT_MOST = 12
_OF_A_KIND = 6
_PAGES = (
    ("Home", "/", "house"),
    ("Models", "/models", "box"),
    ("Upload a version", "/upload", "upload"),
    ("Deployments", "/deployments", "rocket"),
    ("New deployment", "/deployments/new", "plus"),
    ("Pipelines", "/pipelines", "workflow"),
    ("New pipeline", "/pipelines/new", "plus"),
    ("Approvals", "/approvals", "check"),
    ("Fleet", "/fleet", "gpu"),
    ("Costs", "/costs", "circle-dollar-sign"),
    ("Audit", "/audit", "scroll-text"),
    ("Admin", "/admin", "settings"),
    ("API tokens", "/account/tokens", "key-round"),
    ("API reference", "/api/docs", "file-code"),
)


@dataclass(frozen=True, slots=True)
class Target:
    text: str
    url: str
    kind: str
    icon: str


def find(*, actor: User, text: str) -> Sequence[Target]:
    """The first dozen: deployments, pipelines and models whose name or team has the text, then pages."""
    wanted = text.strip().lower()
    things = (
        chain(_deployments(actor, wanted), _pipelines(actor, wanted), _models(actor, wanted))
        if wanted
        else iter(())
    )
    return list(islice(chain(things, _pages(wanted)), _AT_MOST))


def _deployments(actor: User, wanted: str) -> Iterator[Target]:
    team, name = _split(wanted)
    rows = deployments.list_visible_to(actor).filter(name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows[:_OF_A_KIND]:
        url = f"/deployments/{row.team.slug}/{row.name}"
        yield Target(f"{row.team.slug}/{row.name}", url, "deployment", "rocket")


def _pipelines(actor: User, wanted: str) -> Iterator[Target]:
    team, name = _split(wanted)
    rows = pipelines.list_visible_to(actor).filter(name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows[:_OF_A_KIND]:
        url = f"/pipelines/{row.team.slug}/{row.name}"
        yield Target(f"{row.team.slug}/{row.name}", url, "pipeline", "workflow")


def _models(actor: User, wanted: str) -> Iterator[Target]:
    team, name = _split(wanted)
    rows = Model.objects.filter(team__in=policy.visible_teams(actor), name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows.select_related("team").order_by("name")[:_OF_A_KIND]:
        url = f"/models/{row.team.slug}/{row.name}"
        yield Target(f"{row.team.slug}/{row.name}", url, "model", "box")


def _pages(wanted: str) -> Iterator[Target]:
    return (Target(text, url, "page", icon) for text, url, icon in _PAGES if wanted in text.lower())


def _split(wanted: str) -> tuple[str, str]:
    """ "vision/det" looks for "det" in teams that begin with "vision"."""
    team, slash, name = wanted.partition("/")
    return (team, name) if slash else ("", wanted)
