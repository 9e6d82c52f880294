"""The documents inside the portal, and the help of each screen that leads into them."""

from __future__ import annotations

import functools
import re

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver

from portal.ui.docs import documents, help_links
from tests.accounts import make_user
from tests.page import page

DOCS = settings.BASE_DIR / "docs"
NAMES = sorted(
    str(path.relative_to(DOCS).with_suffix(""))
    for path in [*DOCS.glob("*.md"), *DOCS.glob("adr/*.md")]
)


@functools.cache
def anchors(name: str) -> set[str]:
    found = documents.read(name)
    assert found is not None, name
    return {"", *(heading.anchor for heading in found.headings)}


def test_the_help_of_each_screen_hits_a_heading() -> None:
    links = help_links.LINKS
    known = get_resolver().reverse_dict

    assert {key: link for key, link in links.items() if link[1] not in anchors(link[0])} == {}
    assert [url_name for url_name in links if not known.getlist(url_name)] == []


def test_every_link_of_a_document_holds() -> None:
    wrong = []
    for name in NAMES:
        found = documents.read(name)
        assert found is not None, name
        for href in re.findall(r'href="([^"]*)"', found.html):
            if href.startswith(("https://", "mailto:")) or href == "/docs/api":
                continue
            path, _, anchor = href.partition("#")
            target = path.removeprefix("/docs").lstrip("/") if path else name
            if anchor not in anchors(target or documents.INDEX):
                wrong.append((name, href))

    assert wrong == []


def test_markup_of_a_document_stays_text() -> None:
    for name in NAMES:
        found = documents.read(name)
        assert found is not None
        assert not re.search(r"<(script|style|iframe|img|form|input)\b", found.html, re.IGNORECASE)
        assert " style=" not in re.sub(
            r"<code>.*?</code>|<pre>.*?</pre>", "", found.html, flags=re.DOTALL
        )


@pytest.mark.parametrize(
    "name",
    ["../README", "..", "adr/../../manage", "adr", "x.md", "/etc/passwd", "a" * 200, "no-such"],
)
def test_nothing_else_is_read(name: str) -> None:
    assert documents.read(name) is None


@pytest.mark.django_db
def test_the_page_has_the_document_and_its_sections() -> None:
    browser = Client()
    browser.force_login(make_user(username="ana"))

    shown = page(browser.get("/docs/environments"))

    assert shown.links["Promotion"] == "#promotion"
    assert shown.links["ADR 62"] == "/docs/adr/0062-environments-have-rules-of-their-own"
    assert browser.get("/docs/adr/0062-environments-have-rules-of-their-own").status_code == 200
    assert page(browser.get("/docs")).links["Environments"] == "/docs/environments"
    assert browser.get("/docs/nothing").status_code == 404


@pytest.mark.django_db
def test_each_screen_links_to_its_help() -> None:
    browser = Client()
    browser.force_login(make_user(username="ana"))

    assert page(browser.get("/account/tokens")).links["Help"] == "/docs/tokens#scopes"
    assert page(browser.get("/account/notifications")).links["Help"] == "/docs"
