"""Template context of every page's frame. Built lazily, so fragments do not pay for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from portal.accounts import roles
from portal.accounts.models import Team, User
from portal.ui import slots, teams
from portal.ui.docs import help_links

THEMES = ("light", "dark")
THEME_COOKIE = "slipway_theme"


@dataclass(frozen=True, slots=True)
class RailEntry:
    path: str
    text: str
    icon: str
    is_current: bool
    badge: int

    @property
    def badge_text(self) -> str:
        return str(self.badge) if self.badge <= slots.MOST_SHOWN else f"{slots.MOST_SHOWN}+"


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the rail. `path` follows the team's address for what belongs to a team."""

    path: str
    text: str
    icon: str
    is_of_team: bool = False
    # Its page has a filter by team.
    has_filter: bool = False

    def address(self, team: Team | None) -> str:
        """Return the section's address for a team. None: for all teams."""
        if self.is_of_team:
            return f"/{team.slug}{self.path}" if team else "/"
        return f"{self.path}?{teams.FILTER}={team.slug}" if team and self.has_filter else self.path


@dataclass(frozen=True, slots=True)
class TeamLink:
    name: str
    slug: str
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    rail: Sequence[RailEntry]
    status_lines: Sequence[slots.StatusLine]
    # The team of the page, else the one whose page was opened last. None for users without a team.
    team: Team | None
    # The section of each team, and of all where the page has a filter.
    team_links: Sequence[TeamLink]
    # What the switcher shows: a team, or "All teams".
    shown_team: str
    # Of the bell: open ones of the user's teams.
    alerts: int
    theme: str
    is_demo: bool
    # Of this screen: an address in the documents.
    help_path: str


_HOME = Section("", "Home", "house", is_of_team=True)
SECTIONS = (
    _HOME,
    Section("/models", "Models", "box", is_of_team=True),
    Section("/deployments", "Deployments", "rocket", is_of_team=True),
    Section("/pipelines", "Pipelines", "workflow", is_of_team=True),
    Section("/batch", "Batch", "layers", is_of_team=True),
    Section("/approvals", "Approvals", "check"),
    Section("/fleet", "Fleet", "gpu"),
    Section("/costs", "Costs", "circle-dollar-sign", has_filter=True),
    Section("/advice", "Advice", "trending-down", has_filter=True),
    Section("/audit", "Audit", "scroll-text", has_filter=True),
    Section("/admin", "Admin", "settings"),
)
_FOR_LEADS = frozenset({"/audit", "/admin"})
_ALL_TEAMS = "All teams"


def frame(request: HttpRequest) -> dict[str, Any]:
    return {"frame": SimpleLazyObject(lambda: _build(request)), "theme": theme_of(request)}


def theme_of(request: HttpRequest) -> str:
    """Return the chosen theme. Empty follows the system. Rendered by the server, so that nothing flashes."""
    user = getattr(request, "user", None)
    theme = user.theme if isinstance(user, User) else request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def _build(request: HttpRequest) -> Frame:
    user = request.user
    is_lead = isinstance(user, User) and _is_lead(request, user)
    named, last = teams.get_named(request), teams.get_last_used(request)
    current = _current_section(request, last)
    return Frame(
        rail=[
            _entry(
                section, named if section.has_filter else last, user, is_current=section is current
            )
            for section in SECTIONS
            if is_lead or section.path not in _FOR_LEADS
        ],
        status_lines=slots.status_lines(user) if isinstance(user, User) else [],
        team=last,
        team_links=_team_links(request, current or _HOME, named),
        shown_team=named.slug if named else _ALL_TEAMS,
        alerts=slots.alert_count(user) if isinstance(user, User) else 0,
        theme=theme_of(request),
        is_demo=settings.SLIPWAY_DEMO,
        help_path=help_links.address_for(_url_name(request)),
    )


def _current_section(request: HttpRequest, team: Team | None) -> Section | None:
    """Return the section of the page. None for pages of none, such as one's account."""
    here = request.path
    if here == "/":
        return _HOME
    for section in reversed(SECTIONS):
        path = section.address(team).partition("?")[0] if section.is_of_team else section.path
        if here == path or (section is not _HOME and here.startswith(f"{path}/")):
            return section
    # Upload and import are pages of the models.
    is_below_team = team is not None and here.startswith(f"/{team.slug}/")
    return SECTIONS[1] if is_below_team else None


def _team_links(request: HttpRequest, section: Section, named: Team | None) -> list[TeamLink]:
    links = [
        TeamLink(team.name, team.slug, section.address(team), team == named)
        for team in teams.visible(request)
    ]
    if section.has_filter:
        links.insert(0, TeamLink(_ALL_TEAMS, "", section.path, named is None))
    return links


def _is_lead(request: HttpRequest, user: User) -> bool:
    return user.is_platform_admin or roles.leads_any(teams.held_roles(request, user))


def _url_name(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.url_name or "" if match else ""


def _entry(section: Section, team: Team | None, user: object, *, is_current: bool) -> RailEntry:
    badge = slots.count_badge(section.path, user) if isinstance(user, User) else 0
    is_platform = section is _HOME and isinstance(user, User) and user.is_platform_admin
    address = "/" if is_platform else section.address(team)
    return RailEntry(address, section.text, section.icon, is_current=is_current, badge=badge)
