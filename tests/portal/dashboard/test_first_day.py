"""The checklist of the first day: ticked from what is there, shown until done or closed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client

from portal.accounts import tokens
from portal.accounts.models import Role, Team, User
from portal.core import clock
from tests.accounts import make_membership, make_team
from tests.deployments.world import World
from tests.page import Part, page
from tests.portal.dashboard.test_home import measure

SignIn = Callable[[User], Client]


def steps_of(shown: Part) -> dict[str, bool]:
    """Whether each step is done, by its name as it is read aloud."""
    steps = {}
    for line in shown.part("first-day").all("li"):
        state, _, rest = line.text.partition(": ")
        name = next(name for name in NAMES if rest.startswith(name))
        steps[name] = state == "done"
    return steps


NAMES = ("Upload a model", "Request a deployment", "Send a request", "Create an API token")


def has_checklist(shown: Part) -> bool:
    return "First day in" in shown.text


def test_a_member_of_an_empty_team_is_led_through_the_first_day(
    db: None, signed_in: SignIn, settings: Any
) -> None:
    settings.SLIPWAY_DEMO = False
    membership = make_membership(team=make_team(slug="fresh", name="Fresh"))

    shown = page(signed_in(membership.user).get("/fresh"))

    assert steps_of(shown) == dict.fromkeys(NAMES, False)
    assert "Fresh has no models yet." in shown.text
    assert shown.links["Upload the first version"] == "/fresh/upload"
    assert shown.links["guide for data scientists"] == "/docs/guide-data-scientist"
    assert shown.links["Create a token"] == "/account/tokens"


def test_the_demo_names_its_sample(db: None, signed_in: SignIn, settings: Any) -> None:
    settings.SLIPWAY_DEMO = True
    membership = make_membership(team=make_team(slug="fresh", name="Fresh"))

    shown = page(signed_in(membership.user).get("/fresh")).part("first-day")

    assert "Use the demo's var/samples/filetype.onnx" in shown.text
    assert "guide for data scientists" not in shown.links


def test_a_viewer_of_an_empty_team_reads_what_is_missing(db: None, signed_in: SignIn) -> None:
    membership = make_membership(team=make_team(slug="fresh", name="Fresh"), role=Role.VIEWER)

    shown = page(signed_in(membership.user).get("/fresh"))

    assert not has_checklist(shown)
    assert "Fresh has no models yet" in shown.text
    assert "Ask a lead for the member role" in shown.text


def test_steps_are_ticked_from_facts(world: World, signed_in: SignIn) -> None:
    Team.objects.filter(pk=world.team.pk).update(created_at=clock.now())
    client = signed_in(world.member)
    assert steps_of(page(client.get("/vision"))) == dict(
        zip(NAMES, (True, False, False, False), strict=True)
    )

    world.serving()
    shown = page(client.get("/vision"))
    assert steps_of(shown) == dict(zip(NAMES, (True, True, False, False), strict=True))
    assert shown.links["Try it"] == "/vision/deployments/detector/try"

    measure(world, requests=3, failures=0)
    shown = page(client.get("/vision"))
    assert steps_of(shown) == dict(zip(NAMES, (True, True, True, False), strict=True))

    tokens.issue(owner=world.member, name="laptop", days=1, scopes=["read"], team=None)
    assert not has_checklist(page(client.get("/vision")))


def test_people_of_an_old_team_are_not_led_to_a_token(world: World, signed_in: SignIn) -> None:
    world.serving()
    measure(world, requests=3, failures=0)
    Team.objects.filter(pk=world.team.pk).update(created_at=clock.now() - timedelta(days=15))

    assert not has_checklist(page(signed_in(world.member).get("/vision")))


def test_a_closed_checklist_stays_closed_for_its_person(db: None, signed_in: SignIn) -> None:
    team = make_team(slug="fresh", name="Fresh")
    one, other = (make_membership(team=team).user for _ in range(2))
    client = signed_in(one)
    form = next(
        form
        for form in page(client.get("/fresh")).all("form")
        if "Close the checklist" in form.buttons
    )
    key = next(p.attributes["value"] for p in form.all("input") if p.attributes["name"] == "key")

    client.post(form.attributes["action"], {"key": key})

    shown = page(client.get("/fresh"))
    assert not has_checklist(shown)
    assert shown.links["Upload the first version"] == "/fresh/upload"
    assert has_checklist(page(signed_in(other).get("/fresh")))
