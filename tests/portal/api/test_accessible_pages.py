"""Every page by axe-core in both themes, one of them on a desk and the other on a phone, turn and turn about: no
violation, moderate ones included.
"""

from __future__ import annotations

import itertools
import mimetypes
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Page, Route

from portal.accounts.models import User
from tests import screenshots
from tests.benchmarks import every_page
from tests.deployments.browsing import chromium_for_tests
from tests.portal.api.full_world import FullWorld
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
]
_ORIGIN: Final = "http://portal.test"
Theme = Literal["light", "dark"]
# The pages are made of the same components, so each component is seen in all four.
_SEEN_AS: Final[tuple[tuple[tuple[Theme, int], ...], ...]] = (
    (("light", 1280), ("dark", 375)),
    (("dark", 1280), ("light", 375)),
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as the portal answered it."""

    path: str
    role: str
    html: str


def render_pages(full: FullWorld) -> list[Rendered]:
    people: dict[str, User] = {"lead": full.world.lead, "admin": full.world.admin}
    clients = {role: Client() for role in people}
    for role, client in clients.items():
        client.force_login(people[role])
    # Only the benchmark's scene has it; its pages answer 404 here, and are those of other deployments.
    full.names.setdefault("trial_id", 0)
    found = {}
    for address in every_page.addresses(full):
        if address.path.startswith("/api/"):
            continue
        answer = clients[address.role].get(address.path)
        if answer.status_code != HTTPStatus.OK or answer.streaming:
            continue
        html = answer.content.decode()
        # Fragments of pages, whose pages have them, have no title.
        if "<title>" in html:
            found[address.role, address.path] = Rendered(address.path, address.role, html)
    return list(found.values())


def open_page(page: Page, rendered: Rendered) -> None:
    """Open the page as it was rendered. What it asks for later is not answered, but for its static files."""

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if route.request.resource_type == "document":
            route.fulfill(body=rendered.html, content_type="text/html; charset=utf-8")
        elif path.startswith("/static/") and (file := finders.find(path.removeprefix("/static/"))):
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            route.fulfill(body=Path(file).read_bytes(), content_type=kind)
        else:
            route.fulfill(status=HTTPStatus.NO_CONTENT)

    page.unroute_all()
    page.route("**/*", answer)
    page.goto(f"{_ORIGIN}{rendered.path}", timeout=PATIENCE_MS)


def examine(page: Page, rendered: Rendered, *, theme: Theme, width: int) -> list[dict[str, Any]]:
    """List the violations of the page in this theme, at this width in pixels."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=theme)
    open_page(page, rendered)
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return found


def test_axe_finds_nothing_on_any_page(full_world: FullWorld) -> None:
    # Before the browser runs: its event loop would get a database connection of its own.
    rendered = render_pages(full_world)
    assert len({one.path for one in rendered}) > 80

    with chromium_for_tests() as chromium:
        context = chromium.new_context(reduced_motion="reduce", bypass_csp=True)
        page = context.new_page()
        problems = [
            f"{violation['id']}: {one.path} of a {one.role}, {theme}, {width} px: {_name_places(violation)}"
            for one, seen_as in zip(rendered, itertools.cycle(_SEEN_AS), strict=False)
            for theme, width in seen_as
            for violation in examine(page, one, theme=theme, width=width)
        ]

    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def _name_places(violation: dict[str, Any]) -> list[str]:
    return [node["html"][:160] for node in violation["nodes"][:3]]
