"""Hostile values in every field of every form and in every query of every page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.db import transaction
from django.test import Client

from tests.portal import addresses
from tests.portal.api.conftest import frame_once, full_world, module_world
from tests.portal.api.full_world import FullWorld

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("frame_once")]
__all__ = ["frame_once", "full_world", "module_world"]
VALUES = {
    "NUL": "a\0b",
    "surrogate in JSON": '{"request": {"inputs": ["\\ud800"]}, "expected": []}',
    "digits": "9" * 5000,
    "larger than any column": "9223372036854775808",
    "negative": "-1",
    "infinite": "1e999",
    "inf": ".inf",
    "not a number": "NaN",
    "other digits": "٣²",
    "no date": "2026-99-99",
    "date out of range": "0001-01-01T00:00",
    "last date": "9999-12-31T23:59",
    "deep": "[" * 100_000,
    "deep YAML": "- " * 9_000,
    "aliases": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
    "YAML with numbers": "name: x\nspec: {gpus: .inf, llm: {gpu_memory_utilization: 1e308}}",
    "YAML with a date": "name: 2026-99-99\nspec: {cpu: 1:30}",
    "long": "x" * 100_000,
    "emoji": "\U0001f34e",
    "separators": "a|b|c:d,e=f\n=\n:",
    "format": "%s{0}{{x}}",
}
QUERIES = (
    "team",
    "page",
    "q",
    "search",
    "version",
    "where",
    "kind",
    "revision",
    "from",
    "to",
    "pod",
    "lines",
    "metric",
    "v",
    "template",
    "model",
    "cluster",
    "show",
    "pool",
    "start",
    "end",
    "range",
    "by",
    "group",
    "sort",
    "order",
    "state",
    "action",
    "actor",
    "day",
    "month",
    "hour",
    "environment",
    "tag",
    "framework",
    "task",
    "since",
    "until",
    "object",
)


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    is_multipart: bool = False


class Forms(HTMLParser):
    """The forms of a page with what is filled in."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._area = ""
        self._select = ""
        self._by_id: dict[str, Form] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = {name: value or "" for name, value in attrs}
        if tag == "form":
            made = Form(got.get("action", ""), got.get("method", "get").lower())
            self.forms.append(made)
            self._by_id[got.get("id", "")] = made
        owner = self._by_id.get(got.get("form", "")) if "form" in got else None
        form = owner or (self.forms[-1] if self.forms else None)
        if form is None or tag not in ("input", "button", "select", "textarea", "option"):
            return
        name = got.get("name", "")
        if (
            tag == "option"
            and self._select
            and ("selected" in got or not form.fields[self._select])
        ):
            form.fields[self._select] = got.get("value", "")
        elif tag == "select" and name:
            self._select = name
            form.fields[name] = ""
        elif tag == "textarea" and name:
            self._area = name
            form.fields[name] = ""
        elif name and got.get("type") == "file":
            form.files.add(name)
        elif name:
            form.fields.setdefault(name, got.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""
        if tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._area and self.forms:
            self.forms[-1].fields[self._area] += data


def forms_of(content: str) -> list[Form]:
    parser = Forms()
    parser.feed(content)
    return [form for form in parser.forms if "sign-out" not in form.action]


def pages(client: Client, full: FullWorld) -> Iterator[str]:
    for route in addresses.patterns():
        if "GET" in addresses.methods_of(client, route) and not route.startswith("api"):
            yield addresses.path_of(route, {**full.names, "instance_type": "g5.xlarge"})


def send(client: Client, method: str, path: str, data: dict[str, Any]) -> int:
    with transaction.atomic():
        answer = getattr(client, method)(path, data)
        transaction.set_rollback(True)
    if answer.streaming:
        b"".join(answer.streaming_content)
    return int(answer.status_code)


def signed_in(full: FullWorld, who: str) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(getattr(full.world, who))
    return client


def test_no_query_of_a_page_breaks_it(full_world: FullWorld) -> None:
    client = signed_in(full_world, "admin")
    statuses = {}
    for number, path in enumerate(pages(client, full_world)):
        # All names at once: each page takes what it knows. Values take turns over the pages.
        for title in list(VALUES)[number % 11 :: 11]:
            status = send(client, "get", path, dict.fromkeys(QUERIES, VALUES[title][:3000]))
            statuses[path, title] = status

    assert {sent: status for sent, status in statuses.items() if status >= 500} == {}


def test_no_field_of_a_form_breaks_its_page(full_world: FullWorld) -> None:
    client = signed_in(full_world, "lead")
    # Values take turns over the fields: all of them at each would take a quarter of an hour.
    titles = itertools.cycle(VALUES)
    visited, broken = set(), {}
    for path in pages(client, full_world):
        for target, form in posted_forms(client, path):
            key = (target, tuple(sorted(form.fields)))
            if key in visited:
                continue
            visited.add(key)
            names = sorted(form.fields.keys() - {"csrfmiddlewaretoken"})
            tries = [dict.fromkeys(names, VALUES[title]) for title in next_of(titles, 2)]
            tries += [{name: VALUES[next(titles)]} for name in names[::3]]
            for typed in tries:
                status = send(client, "post", target, {**form.fields, **typed})
                if status >= 500:
                    broken[target, str(typed)[:80]] = status

    assert len(visited) > 5
    assert broken == {}


def next_of(titles: Iterator[str], count: int) -> list[str]:
    return list(itertools.islice(titles, count))


def posted_forms(client: Client, path: str) -> Iterator[tuple[str, Form]]:
    answer = client.get(path)
    if answer.status_code == 200 and "html" in answer["Content-Type"]:
        for form in forms_of(answer.content.decode()):
            target = urlsplit(urljoin(path, form.action) or path).path
            if form.method == "post":
                yield target, form


@pytest.mark.parametrize(
    "path", ["/vision/models", "/vision/deployments", "/sign-in", "/costs.csv"]
)
def test_a_query_with_nul_is_a_bad_request(full_world: FullWorld, path: str) -> None:
    answer = signed_in(full_world, "member").get(f"{path}?search=a%00b")

    assert answer.status_code == 400
    assert b"Slipway could not read" in answer.content
