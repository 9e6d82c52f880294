"""Admin, People."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Identity, Membership, User
from portal.accounts.oidc.providers import Provider
from portal.audit.models import AuditEvent
from tests import page as pages
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
LAB = Provider("lab", "Lab", "https://lab.example", "slipway", "not a secret")


@pytest.fixture
def browser(client: Client, settings: Any) -> Client:
    settings.SLIPWAY_OIDC = (LAB,)
    client.force_login(make_user("admin", is_platform_admin=True))
    make_membership(user=make_user("ana@example.com", first_name="Ana"), team=make_team("vision"))
    return client


def test_people_are_found_by_any_of_their_names(browser: Client) -> None:
    page = browser.get("/admin/people", {"q": "ana example"}).content.decode()
    nobody = browser.get("/admin/people", {"q": "%_"}).content.decode()

    assert "/admin/people/ana@example.com" in page.replace("%40", "@")
    assert "vision · member" in page
    assert "/admin/people/admin" not in page
    assert "No results" in nobody


def test_deactivating_can_be_undone(browser: Client) -> None:
    ana = "/admin/people/ana@example.com"

    browser.post(f"{ana}/deactivate", {"reason": "left"})

    page = browser.get(ana).content.decode()
    assert not User.objects.get(username="ana@example.com").is_active
    assert "Reactivate ana@example.com" in page
    assert "Deactivate ana@example.com" not in page
    again = browser.post(f"{ana}/deactivate")
    assert again.status_code == 409
    browser.post(f"{ana}/reactivate")
    assert User.objects.get(username="ana@example.com").is_active
    assert AuditEvent.objects.count() == 2


def test_nobody_is_offered_to_deactivate_themselves(browser: Client) -> None:
    page = browser.get("/admin/people/admin").content.decode()
    answer = browser.post("/admin/people/admin/deactivate")

    assert "Deactivate admin" not in page
    assert answer.status_code == 422
    assert User.objects.get(username="admin").is_active


def test_a_refused_connection_keeps_what_was_typed(browser: Client) -> None:
    ana = "/admin/people/ana@example.com"

    made = browser.post(f"{ana}/connect", {"provider": "lab", "subject": "00u1"})
    refused = browser.post(f"{ana}/connect", {"provider": "lab", "subject": "00u2"})
    unknown = browser.post(f"{ana}/connect", {"provider": "other", "subject": "00u2"})

    assert (made.status_code, refused.status_code, unknown.status_code) == (302, 409, 422)
    assert pages.page(refused).field("subject").value == "00u2"
    assert Identity.objects.get().subject == "00u1"


def test_the_page_says_who_gave_each_role(browser: Client) -> None:
    Membership.objects.update(provider="lab")

    assert "claims of lab" in browser.get("/admin/people/ana@example.com").content.decode()
    assert browser.get("/admin/people/nobody").status_code == 404
