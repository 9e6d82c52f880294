"""A first visit with nothing cached fetches less than 200 kB, compressed as the portal sends it."""

from __future__ import annotations

import gzip
import posixpath
import re
from pathlib import Path
from typing import Final

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.page import page
from tests.portal.api.full_world import FullWorld

_MOST_BYTES: Final = 200_000
_IMPORTED: Final = re.compile(r"""^import [^;]*?["'](\./[^"']+)["']""", re.MULTILINE)
# Those with the most markup, and those with scripts of their own.
_PAGES: Final = (
    "/vision",
    "/vision/upload",
    "/vision/batch/new",
    "/vision/deployments/new",
    "/vision/deployments/detector",
    "/vision/deployments/detector/try",
    "/vision/deployments/detector/logs",
    "/vision/models/detector",
    "/approvals",
    "/fleet",
    "/costs",
    "/audit",
    "/docs",
)


def list_assets(html: str) -> set[str]:
    """List the paths below /static/ of a page's scripts, what they import, and style sheets."""
    parts = page(html)
    named = [one.attributes.get("src", "") for one in parts.all("script")]
    named += [one.attributes.get("href", "") for one in parts.all("link")]
    waiting = [name.removeprefix("/static/") for name in named if name.startswith("/static/")]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name.endswith(".js"):
            folder = posixpath.dirname(name)
            imports = _IMPORTED.findall(read_asset(name).decode())
            waiting += [posixpath.normpath(posixpath.join(folder, one)) for one in imports]
    return found


def read_asset(name: str) -> bytes:
    file = finders.find(name)
    assert file, name
    return Path(file).read_bytes()


@pytest.mark.usefixtures("db")
def test_a_first_load_is_below_200_kb(full_world: FullWorld) -> None:
    client = Client()
    client.force_login(full_world.world.lead)

    sizes = {}
    for path in _PAGES:
        answer = client.get(path)
        assert answer.status_code == 200, path
        html = answer.content.decode()
        assets = list_assets(html)
        assert {"css/slipway.css", "js/slipway.js"} <= assets, path
        sizes[path] = sum(
            len(gzip.compress(part))
            for part in (answer.content, *(read_asset(name) for name in assets))
        )

        if path == "/vision/upload":
            assert "js/upload/api.js" in assets, "what a module imports counts"

    assert max(sizes.values()) < _MOST_BYTES, sizes
