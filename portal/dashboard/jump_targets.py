"""Search results: pages, and the models, deployments and pipelines that the user may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from deployments.models import Model
from deployments.pipelines.selectors import pipelines
from deployments.serving.selectors import deployments
from portal.accounts import policy
from portal.accounts.models import Team, User

_MAX_TARGETS = 12
_MAX_OF_A_KIND = 6
# Pages of the team whose page was opened last.
_OF_TEAM = (
    ("Home", "", "house"),
    ("Models", "/models", "box"),
    ("Upload a version", "/upload", "upload"),
    ("Import a version", "/import", "download"),
    ("Deployments", "/deployments", "rocket"),
    ("New deployment", "/deployments/new", "plus"),
    ("Pipelines", "/pipelines", "workflow"),
    ("New pipeline", "/pipelines/new", "plus"),
    ("Batch jobs", "/batch", "layers"),
    ("New batch job", "/batch/new", "plus"),
)
_OF_ALL = (
    ("Approvals", "/approvals", "check"),
    ("Fleet", "/fleet", "gpu"),
    ("Fleet actions", "/fleet/actions", "gpu"),
    ("Costs", "/costs", "circle-dollar-sign"),
    ("Advice", "/advice", "trending-down"),
    ("What-if", "/what-if", "trending-down"),
    ("Alerts", "/alerts", "bell"),
    ("Environments", "/admin/environments", "shield-check"),
    ("Quarantined versions in use", "/quarantined-in-use", "circle-alert"),
    ("Audit", "/audit", "scroll-text"),
    ("Admin", "/admin", "settings"),
    ("Sign-in and sessions", "/account/security", "shield-check"),
    ("API tokens", "/account/tokens", "key-round"),
    ("API reference", "/docs/api", "file-code"),
)


@dataclass(frozen=True, slots=True)
class JumpTarget:
    text: str
    url: str
    kind: str
    icon: str


def find(*, actor: User, team: Team | None, text: str) -> Sequence[JumpTarget]:
    """Find the first 12 results: deployments, pipelines and models that match, then pages."""
    query = text.strip().lower()
    matches = (
        chain(_deployments(actor, query), _pipelines(actor, query), _models(actor, query))
        if query
        else iter(())
    )
    return list(islice(chain(matches, _pages(team, query)), _MAX_TARGETS))


def _deployments(actor: User, query: str) -> Iterator[JumpTarget]:
    team, name = _split(query)
    rows = deployments.list_visible_to(actor).filter(name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows[:_MAX_OF_A_KIND]:
        url = f"/{row.team.slug}/deployments/{row.name}"
        yield JumpTarget(f"{row.team.slug}/{row.name}", url, "deployment", "rocket")


def _pipelines(actor: User, query: str) -> Iterator[JumpTarget]:
    team, name = _split(query)
    rows = pipelines.list_visible_to(actor).filter(name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows[:_MAX_OF_A_KIND]:
        url = f"/{row.team.slug}/pipelines/{row.name}"
        yield JumpTarget(f"{row.team.slug}/{row.name}", url, "pipeline", "workflow")


def _models(actor: User, query: str) -> Iterator[JumpTarget]:
    team, name = _split(query)
    rows = Model.objects.filter(team__in=policy.visible_teams(actor), name__icontains=name)
    if team:
        rows = rows.filter(team__slug__startswith=team)
    for row in rows.select_related("team").order_by("name")[:_MAX_OF_A_KIND]:
        url = f"/{row.team.slug}/models/{row.name}"
        yield JumpTarget(f"{row.team.slug}/{row.name}", url, "model", "box")


def _pages(team: Team | None, query: str) -> Iterator[JumpTarget]:
    pages = [(text, f"/{team.slug}{path}", icon) for text, path, icon in _OF_TEAM] if team else []
    return (
        JumpTarget(text, url, "page", icon)
        for text, url, icon in (*pages, *_OF_ALL)
        if query in text.lower()
    )


def _split(query: str) -> tuple[str, str]:
    """ "vision/det" searches for "det" in teams that start with "vision"."""
    team, slash, name = query.partition("/")
    return (team, name) if slash else ("", query)
