"""Promote, Pause and Abort in the header of every tab, and the pages that say what they move."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.pages.web.frame import TABS
from fleet.models import Workload, WorkloadMinute
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.signed_in import HTMX, start_canary
from tests.deployments.world import World
from tests.page import Part, page

ONE = "/vision/deployments/detector"
PATHS = [
    "",
    "/rollout",
    "/revisions",
    "/manifests",
    "/timeline",
    "/logs",
    "/try",
    "/callers",
    "/quality",
    "/targets",
    "/cost",
]
SignIn = Callable[[User], Client]


def answered(world: World, *, requests_per_minute: int) -> None:
    at = world.clock.at.replace(second=0, microsecond=0)
    workload = Workload.objects.get(name="detector-r1")
    for ago in range(1, 6):
        WorkloadMinute.objects.create(
            workload=workload,
            start=at - timedelta(minutes=ago),
            request_success=requests_per_minute,
            observed_ms=60_000,
        )


def header(answer: Any) -> Part:
    return page(answer).part("deployment-head")


def actions(answer: Any) -> list[str]:
    """What the buttons of the rollout do, in the order of the page."""
    return [
        button.value
        for button in header(answer).all("button")
        if button.attributes.get("name") == "action"
    ]


def test_there_is_a_path_for_every_tab() -> None:
    assert len(PATHS) == len(TABS)


@pytest.mark.parametrize("path", PATHS)
def test_every_tab_has_the_buttons_of_a_running_rollout(
    world: World, rollout: Rollout, signed_in: SignIn, path: str
) -> None:
    answer = signed_in(world.lead).get(f"{ONE}{path}")

    assert actions(answer) == ["pause", "abort", "promote"]
    assert header(answer).hidden("evidence_hash") == rollout.evidence_hash
    assert "10 → 50%" in header(answer).text


def test_the_polled_header_has_them_too_and_they_act(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)
    part = page(client.get(ONE, **HTMX, HTTP_HX_TARGET="deployment-head"))
    shown = part.hidden("evidence_hash")

    answer = client.post(f"{ONE}/rollout", {"action": "promote", "evidence_hash": shown})

    assert answer.status_code == 302
    assert Rollout.objects.get().step_index == 1


def test_who_may_not_promote_sees_pause_and_abort_only(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    assert actions(signed_in(world.member).get(ONE)) == ["pause", "abort"]
    assert actions(signed_in(world.viewer).get(ONE)) == []


def test_promoting_rests_with_its_reason_while_a_step_soaks(
    world: World, signed_in: SignIn
) -> None:
    start_canary(world)

    head = header(signed_in(world.lead).get(f"{ONE}/cost"))

    (promote,) = (part for name, part in head.buttons.items() if name.startswith("Promote"))
    assert promote.is_disabled
    assert promote.attributes["title"].startswith("Waiting. ")


def test_a_paused_rollout_offers_to_resume(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    client = signed_in(world.member)
    client.post(f"{ONE}/rollout", {"action": "pause"})

    answer = client.get(f"{ONE}/logs")

    assert "Resume" in header(answer).buttons
    assert actions(answer) == ["unpause", "abort"]


def test_without_a_rollout_there_are_none(world: World, signed_in: SignIn) -> None:
    world.serving()

    assert actions(signed_in(world.lead).get(ONE)) == []


def test_promoting_fully_needs_the_page_that_states_the_traffic(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    answered(world, requests_per_minute=2256)
    client, audited = signed_in(world.lead), AuditEvent.objects.count()
    data = {"action": "promote_fully", "evidence_hash": rollout.evidence_hash}

    unconfirmed = client.post(f"{ONE}/rollout", data)

    assert unconfirmed["Location"] == f"{ONE}/rollout/promote-fully"
    rollout.refresh_from_db()
    assert (rollout.phase, AuditEvent.objects.count()) == ("running", audited)
    text = page(client.get(unconfirmed["Location"])).text
    rates = re.findall(r"([\d.]+) requests/s", text)
    assert len(rates) == 2
    assert float(rates[1]) == pytest.approx(float(rates[0]) * 0.9, abs=0.1)
    assert "10% → 100%" in text
    assert "Skipped: 50%" in text

    client.post(f"{ONE}/rollout", {**data, "confirmed": "yes"})

    assert Rollout.objects.get().phase == "promoting"


@pytest.mark.parametrize(
    ("person", "status"), [("member", 403), ("viewer", 403), ("stranger", 404)]
)
def test_others_do_not_get_the_page_of_promoting_fully(
    world: World, rollout: Rollout, signed_in: SignIn, person: str, status: int
) -> None:
    assert (
        signed_in(getattr(world, person)).get(f"{ONE}/rollout/promote-fully").status_code == status
    )


def test_the_page_of_promoting_fully_ends_with_the_rollout(world: World, signed_in: SignIn) -> None:
    world.serving()

    assert signed_in(world.lead).get(f"{ONE}/rollout/promote-fully").status_code == 409


def test_stopping_production_states_the_traffic_and_becomes_a_request(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    answered(world, requests_per_minute=2256)
    client = signed_in(world.member)
    text = page(client.get(f"{ONE}/stop")).text
    assert re.search(r"3\d\.\d requests/s, all of them will fail", text)
    assert "stopping it needs approval" in text

    answer = client.post(f"{ONE}/stop", {"comment": "too dear"})

    change = ChangeRequest.objects.get(kind="stop")
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert not Deployment.objects.get().is_stopped
    shown = signed_in(world.lead).get(f"/approvals/{change.pk}").content.decode()
    assert "Stop detector" in shown
    assert "The endpoint returns 404" in shown


def test_a_second_stop_request_is_refused_with_a_message(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    client.post(f"{ONE}/stop", {"comment": "a"})

    answer = client.post(f"{ONE}/stop", {"comment": "b"})

    assert answer.status_code == 409
    assert "withdraw it first" in answer.content.decode()
    assert ChangeRequest.objects.filter(kind="stop").count() == 1
