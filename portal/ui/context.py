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
class Frame:
    rail: Sequence[RailEntry]
    status_lines: Sequence[slots.StatusLine]
    teams: Sequence[Team]
    team: Team | None
    # Target of the team switcher: the first page of the current section.
    section_path: str
    # Of the bell: open ones of the user's teams.
    alerts: int
    theme: str
    is_demo: bool
    # Of this screen: an address in the documents.
    help_path: str


_RAIL = (
    ("/", "Home", "house"),
    ("/models", "Models", "box"),
    ("/deployments", "Deployments", "rocket"),
    ("/pipelines", "Pipelines", "workflow"),
    ("/approvals", "Approvals", "check"),
    ("/fleet", "Fleet", "gpu"),
    ("/costs", "Costs", "circle-dollar-sign"),
    ("/advice", "Advice", "trending-down"),
    ("/audit", "Audit", "scroll-text"),
    ("/admin", "Admin", "settings"),
)
# Pages of a section that have addresses of their own.
_BESIDE = {"/deployments": "/batch"}
_FOR_LEADS = frozenset({"/audit", "/admin"})


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
    entries = [_entry(request, *entry) for entry in _RAIL if is_lead or entry[0] not in _FOR_LEADS]
    return Frame(
        rail=entries,
        status_lines=slots.status_lines(user) if isinstance(user, User) else [],
        teams=teams.visible(request),
        team=teams.current(request),
        section_path=next((entry.path for entry in entries if entry.is_current), "/"),
        alerts=slots.alert_count(user) if isinstance(user, User) else 0,
        theme=theme_of(request),
        is_demo=settings.SLIPWAY_DEMO,
        help_path=help_links.address_for(_url_name(request)),
    )


def _is_lead(request: HttpRequest, user: User) -> bool:
    return user.is_platform_admin or roles.leads_any(teams.held_roles(request, user))


def _url_name(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.url_name or "" if match else ""


def _entry(request: HttpRequest, path: str, text: str, icon: str) -> RailEntry:
    here = request.path
    paths = (path, _BESIDE.get(path, path))
    is_current = here in paths or (path != "/" and here.startswith(tuple(f"{p}/" for p in paths)))
    user = request.user
    badge = slots.count_badge(path, user) if isinstance(user, User) else 0
    return RailEntry(path=path, text=text, icon=icon, is_current=is_current, badge=badge)
