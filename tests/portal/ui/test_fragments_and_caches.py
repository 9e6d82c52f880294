"""One address, two answers: no cache may show the one for the other."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from tests import page as pages

pytestmark = pytest.mark.django_db
HTMX: dict[str, Any] = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))
    return client


@pytest.mark.parametrize(
    "path",
    [
        "/vision",
        "/vision/deployments",
        "/approvals",
        "/fleet",
        "/audit",
        "/vision/pipelines",
        "/vision/models",
    ],
)
def test_pages_vary_and_their_parts_are_not_stored(browser: Client, path: str) -> None:
    page = browser.get(path)
    part = browser.get(path, **HTMX)
    restored = browser.get(path, **HTMX, HTTP_HX_HISTORY_RESTORE_REQUEST="true")

    assert "HX-Request" in page["Vary"]
    assert "HX-Request" in part["Vary"]
    assert part["Cache-Control"] == "no-store"
    assert restored["Cache-Control"] == "no-store"
    assert pages.page(restored).is_whole_page


def test_a_refusal_of_a_fragment_is_not_stored_either(browser: Client) -> None:
    answer = browser.get("/vision/deployments/nothing", **HTMX)

    assert (answer.status_code, answer["Cache-Control"]) == (404, "no-store")
    assert "HX-Request" in answer["Vary"]


def test_the_charts_script_is_kept_for_a_year_all_the_same(browser: Client) -> None:
    from portal.ui.vega import bundle

    answer = browser.get(f"/charts/vega-{bundle.VERSION}.js")

    assert "immutable" in answer["Cache-Control"]
    assert "HX-Request" not in answer["Vary"]
