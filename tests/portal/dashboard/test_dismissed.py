"""An item that needs attention can be dismissed until it changes, for one person alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from deployments.changes.services import requests
from deployments.models import Deployment
from deployments.states import DeploymentState
from portal.accounts import preferences
from portal.accounts.models import DismissedItem, User
from portal.core.errors import Invalid
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]


def home(client: Client) -> Part:
    return page(client.get("/vision"))


def dismiss(client: Client, title: str) -> None:
    """Press the button of this item, as a browser without JavaScript sends it."""
    name = f"Dismiss {title} until it changes"
    form = next(form for form in home(client).all("form") if name in form.buttons)
    fields = {part.attributes["name"]: part.attributes["value"] for part in form.all("input")}
    fields.pop("csrfmiddlewaretoken", None)
    answer = client.post(form.attributes["action"], fields)
    assert (answer.status_code, answer["Location"]) == (303, "/vision")


def restore(client: Client) -> None:
    form = next(form for form in home(client).all("form") if "Show again" in form.buttons)
    keys = [
        part.attributes["value"] for part in form.all("input") if part.attributes["name"] == "key"
    ]
    assert client.post(form.attributes["action"], {"key": keys}).status_code == 303


def fail(deployment: Deployment, reason: str) -> None:
    Deployment.objects.filter(pk=deployment.pk).update(
        state=DeploymentState.DEGRADED, state_reason=reason
    )


def test_a_dismissed_item_is_hidden_for_its_person_alone(world: World, signed_in: SignIn) -> None:
    fail(world.serving(), "out of GPU memory")
    viewer, member = signed_in(world.viewer), signed_in(world.member)

    dismiss(viewer, "vision/detector")

    assert "Failing" not in home(viewer).part("needs").text
    assert "1 dismissed until it changes." in home(viewer).text
    assert "Failing" in home(member).part("needs").text


def test_it_comes_back_when_its_facts_change(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    fail(deployment, "out of GPU memory")
    viewer = signed_in(world.viewer)
    dismiss(viewer, "vision/detector")

    fail(deployment, "the image cannot be pulled")

    assert "the image cannot be pulled" in home(viewer).part("needs").text


def test_what_fails_comes_back_after_a_day(world: World, signed_in: SignIn) -> None:
    fail(world.serving(), "out of GPU memory")
    viewer = signed_in(world.viewer)
    dismiss(viewer, "vision/detector")

    world.clock.move(timedelta(hours=23, minutes=59).total_seconds())
    assert "Failing" not in home(viewer).part("needs").text
    world.clock.move(60)

    assert "Failing" in home(viewer).part("needs").text


def test_a_dismissed_request_returns_with_other_evidence(world: World, signed_in: SignIn) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft("street"))
    lead = signed_in(world.lead)
    dismiss(lead, "Deploy detector:1 as street")
    world.clock.move(timedelta(days=2).total_seconds())
    assert "Approve?" not in home(lead).text

    type(change).objects.filter(pk=change.pk).update(evidence_hash="f" * 64)

    assert "Approve?" in home(lead).text


def test_what_was_dismissed_can_be_shown_again(world: World, signed_in: SignIn) -> None:
    fail(world.serving(), "out of GPU memory")
    viewer = signed_in(world.viewer)
    dismiss(viewer, "vision/detector")

    restore(viewer)

    assert "Failing" in home(viewer).part("needs").text
    assert DismissedItem.objects.count() == 0


def test_the_newest_dismissals_of_a_person_are_kept(world: World) -> None:
    most = preferences.MOST_DISMISSED
    for number in range(most + 2):
        preferences.dismiss_item(actor=world.viewer, key=f"deployment {number}", facts="")
        world.clock.move(1)
    preferences.dismiss_item(actor=world.lead, key="deployment 1", facts="")

    kept = preferences.list_dismissed(world.viewer)

    assert sorted(kept) == sorted(f"deployment {number}" for number in range(2, most + 2))
    assert list(preferences.list_dismissed(world.lead)) == ["deployment 1"]


@pytest.mark.parametrize(("key", "facts"), [("", ""), ("x" * 81, ""), ("deployment 1", "f" * 65)])
def test_what_no_item_sends_is_refused(world: World, key: str, facts: str) -> None:
    with pytest.raises(Invalid):
        preferences.dismiss_item(actor=world.viewer, key=key, facts=facts)

    assert DismissedItem.objects.count() == 0
