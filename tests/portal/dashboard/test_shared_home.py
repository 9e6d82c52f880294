"""Home of a team is rendered once for all who poll it; each still gets what is theirs alone."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.changes.services import requests
from deployments.models import Deployment
from portal.accounts.models import User
from tests.accounts import make_membership, make_team, make_user
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]


def poll(client: Client, team: str = "vision") -> str:
    return client.get(f"/{team}", **HTMX, HTTP_HX_TARGET="home").content.decode()


def test_the_second_poll_of_a_team_reads_nothing_of_its_traffic(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    lead, member = signed_in(world.lead), signed_in(world.member)
    with CaptureQueriesContext(
        connection,
    ) as first:
        sent = poll(lead)
    with CaptureQueriesContext(connection) as second:
        shared = poll(member)

    assert "Deployments in vision" in sent
    assert "Deployments in vision" in shared
    assert any("fleet_workloadminute" in (query["sql"] or "") for query in first)
    assert not any("fleet_workloadminute" in (query["sql"] or "") for query in second)


def test_what_waits_for_one_is_not_shown_to_another(world: World, signed_in: SignIn) -> None:
    requests.request_deploy(actor=world.member, draft=world.draft("street"))

    assert "Approve?" in poll(signed_in(world.lead))
    assert "Approve?" not in poll(signed_in(world.member))


def test_what_begins_to_wait_is_in_the_next_poll(world: World, signed_in: SignIn) -> None:
    lead = signed_in(world.lead)
    assert "Approve?" not in poll(lead)

    requests.request_deploy(actor=world.member, draft=world.draft("street"))

    assert "Approve?" in poll(lead)


def test_a_viewer_is_not_sent_the_buttons_of_a_member(world: World, signed_in: SignIn) -> None:
    button = "New deployment"

    assert button in poll(signed_in(world.member))
    assert button not in poll(signed_in(world.viewer))


def test_the_home_of_another_team_is_another(world: World, signed_in: SignIn) -> None:
    world.serving()
    other = make_membership(user=make_user("nina"), team=make_team(slug="speech", name="Speech"))
    assert "detector" in poll(signed_in(world.lead))

    theirs = poll(signed_in(other.user), "speech")

    assert "detector" not in theirs
    assert "Speech has no models yet" in theirs


def test_the_page_itself_is_always_of_now(world: World, signed_in: SignIn) -> None:
    world.serving()
    lead = signed_in(world.lead)
    poll(lead)
    Deployment.objects.update(state_reason="out of GPU memory", state="degraded")

    assert "out of GPU memory" in page(lead.get("/vision")).text
