"""The list of components: all that the stylesheet has, nothing that no page uses, and each on the page /ui/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from django.test import Client

from portal.ui.components import COMPONENTS, FRAME
from portal.ui.templatetags import slipway
from tests.accounts import make_user
from tests.page import Part, page

ROOT: Final = Path(settings.BASE_DIR)
TEMPLATES: Final = ROOT / "templates"
# Tags and filters of which a page reads a value; the others draw a component.
_VALUES: Final = {"icon", "page_url", "paged", "team_links", "team_options", "team_url"}


def read_component_classes() -> set[str]:
    """Read the class names in the layer *components*."""
    css = re.sub(r"/\*.*?\*/", "", (ROOT / "static/css/slipway.css").read_text(), flags=re.DOTALL)
    _, _, rest = css.partition("@layer components {")
    layer, _, _ = rest.partition("@layer utilities {")
    selectors = [
        re.sub(r"\[[^\]]*\]", "", selector)
        for selector in re.findall(r"([^{}]+)\{", layer)
        if not selector.strip().startswith("@")
    ]
    names = {name for each in selectors for name in re.findall(r"\.([a-zA-Z][\w-]*)", each)}
    # On the element html where scripts run.
    return names - {"js"}


def read_sources(*, of_gallery: bool) -> str:
    """Join the templates of the gallery, or else all others, with the Python and the scripts that write markup."""
    texts = [
        path.read_text()
        for path in TEMPLATES.rglob("*.html")
        if path.is_relative_to(TEMPLATES / "gallery") == of_gallery
    ]
    if not of_gallery:
        own = {"components.py", "gallery.py"}
        folders = ("portal", "deployments", "fleet", "static/js")
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*.[pj][ys]")]
        texts += [path.read_text() for path in paths if path.name not in own]
    return "\n".join(texts)


def is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def list_classes(part: Part) -> set[str]:
    return {name for one in part.all_parts() for name in one.attributes.get("class", "").split()}


def test_the_list_has_every_class_of_the_stylesheet() -> None:
    listed = frozenset[str]().union(*(component.all_classes for component in COMPONENTS))
    layer = read_component_classes()

    assert len(layer) > 150
    assert layer - listed == set(), "give it to a component, or take another class"
    assert len({component.slug for component in COMPONENTS}) == len(COMPONENTS) <= 30


def test_every_class_and_tag_of_a_component_is_used_by_a_page() -> None:
    pages, gallery = read_sources(of_gallery=False), read_sources(of_gallery=True)
    # htmx sets the first; percentages and GPU levels are counted.
    made = re.compile(r"htmx-request|(w|use|h)-?\d|use-unknown")

    names = {name for component in COMPONENTS for name in component.all_classes}
    assert {
        name for name in names if not made.fullmatch(name) and not is_named(name, pages)
    } == set()
    tags = slipway.register.tags.keys() - _VALUES
    unshown = {tag for tag in tags if not re.search(rf"{{% {tag}\b", gallery)}
    unused = {tag for tag in tags if not re.search(rf"{{% {tag}\b", pages)}
    assert (unshown, unused) == (set(), set())


def test_every_partial_is_included_by_a_page() -> None:
    """A template with a leading underscore, named in full or by the folder and a name that a view puts together."""
    sources = read_sources(of_gallery=False)
    partials = [str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("_*.html")]

    unused = [
        name
        for name in partials
        if name not in sources and not re.search(_make_pattern(name), sources)
    ]
    assert len(partials) > 150
    assert unused == []


def _make_pattern(name: str) -> str:
    """Match the start of an f-string that ends in this partial: "changes/_new_{name}.html"."""
    folder, _, file = name.rpartition("/")
    starts = [file[:end] for end in range(1, len(file) - len(".html")) if file[end - 1] == "_"]
    return "|".join(re.escape(f"{folder}/{start}") + r"(\{|\" ?\|?)" for start in starts)


@pytest.mark.django_db
def test_the_page_shows_every_component_in_both_themes() -> None:
    browser = Client()
    browser.force_login(make_user(username="ada", is_platform_admin=True))

    shown = page(browser.get("/ui/"))

    themes = {
        component.slug: [
            part.attributes["data-theme"]
            for part in shown.part(component.slug).all("div")
            if "data-theme" in part.attributes
        ]
        for component in COMPONENTS
    }
    assert themes == {component.slug: ["light", "dark"] for component in COMPONENTS}
    missing = {
        component.slug: component.classes - list_classes(shown.part(component.slug))
        for component in COMPONENTS
        if component is not FRAME
    }
    assert {slug: names for slug, names in missing.items() if names} == {}
    assert FRAME.classes - list_classes(shown) == set()
    ids = [part.attributes["id"] for part in shown.all_parts() if "id" in part.attributes]
    assert {one for one in ids if ids.count(one) > 1} == set()
