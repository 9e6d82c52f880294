from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import Rollout
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

URL = "/vision/deployments/detector/rollout"
SignIn = Callable[[User], Client]


def press(client: Client, rollout: Rollout, action: str, **typed: str) -> Any:
    rollout.refresh_from_db()
    return client.post(
        URL,
        {
            "action": action,
            "evidence_hash": rollout.evidence_hash,
            "reason": "",
            "confirmed": "yes",
            **typed,
        },
    )


def test_the_page_says_what_each_button_will_do(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    page = signed_in(world.lead).get(URL).content.decode()

    assert "10 → 50%" in page
    assert "Sends 50% of requests to detector:2 at the gateway." in page
    assert "Sends all requests back to detector:1" in page
    assert "not known" in page


def test_a_failing_guard_says_so_at_the_pill_and_at_the_resting_buttons(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    failing = [
        {**guard, "verdict": "fail", "message": "+93% against stable"}
        if guard["guard"] == "Mean latency"
        else guard
        for guard in rollout.evidence
    ]
    Rollout.objects.filter(pk=rollout.pk).update(
        evidence=failing, observed={**rollout.observed, "is_promotable": False}
    )

    shown = page(signed_in(world.lead).get(URL))

    assert "Failing" in [pill.text for pill in shown.all("span")]
    reason = "Failing. Mean latency: +93% against stable."
    # At both buttons, and where the one in the header is pointed at.
    assert (shown.text.count(reason), shown.titles.count(reason)) == (2, 1)
    assert len([button for button in shown.all("button") if button.is_disabled]) == 2


def test_the_history_names_requester_and_approver(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    history = page(signed_in(world.viewer).get(URL)).text.split("History", 1)[1]

    assert f"approved · {world.lead.display_name}" in history
    assert f"requested · {world.member.display_name}" in history


def test_a_lead_promotes_from_the_page(world: World, rollout: Rollout, signed_in: SignIn) -> None:
    answer = press(signed_in(world.lead), rollout, "promote")

    rollout.refresh_from_db()
    assert answer.status_code == 302
    assert rollout.step_index == 1


@pytest.mark.parametrize(
    ("person", "status"), [("member", 403), ("viewer", 403), ("stranger", 404)]
)
@pytest.mark.parametrize("action", ["promote", "promote_fully"])
def test_promoting_is_refused_to_others_and_changes_nothing(
    world: World, rollout: Rollout, signed_in: SignIn, person: str, status: int, action: str
) -> None:
    audited = AuditEvent.objects.count()

    answer = press(signed_in(getattr(world, person)), rollout, action)

    rollout.refresh_from_db()
    assert answer.status_code == status
    assert (rollout.phase, rollout.step_index) == (RolloutPhase.RUNNING, 0)
    assert AuditEvent.objects.count() == audited


def test_a_promotion_of_other_evidence_is_refused_with_a_message(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    answer = press(signed_in(world.lead), rollout, "promote", evidence_hash="0" * 64)

    rollout.refresh_from_db()
    assert answer.status_code == 409
    assert 'role="alert"' in answer.content.decode()
    assert rollout.step_index == 0


def test_any_member_may_pause_carry_on_and_abort(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    client = signed_in(world.member)
    press(client, rollout, "pause", reason="looking at a ticket")
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.PAUSED
    assert "Resume" in client.get(URL).content.decode()

    press(client, rollout, "unpause")
    press(client, rollout, "abort", reason="wrong labels")

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING


def test_polls_become_seldom_when_the_rollout_is_over(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    client = signed_in(world.viewer)
    running = page(client.get(URL, **HTMX, HTTP_HX_TARGET="deployment-head"))
    assert running.part("deployment-head").attributes["hx-trigger"] == "every 4s"
    assert "Requested traffic" in running.part("rollout").text
    actions.abort(actor=world.member, rollout_id=rollout.pk)
    world.reconcile_now(rollout.deployment)
    world.clock.move(3600)
    world.reconcile_now(rollout.deployment)

    final = page(client.get(URL, **HTMX, HTTP_HX_TARGET="deployment-head"))

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTED
    assert final.part("deployment-head").attributes["hx-trigger"] == "every 15s"
    assert "Aborted" in final.part("rollout").text


def test_a_split_that_chance_does_not_explain_raises_an_alarm(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    wrong = [
        {**guard, "verdict": "fail", "message": "the candidate got 900 of 1,000 requests"}
        if guard["guard"] == "Traffic split"
        else guard
        for guard in rollout.evidence
    ]
    Rollout.objects.filter(pk=rollout.pk).update(evidence=wrong)

    page = signed_in(world.viewer).get(URL).content.decode()

    assert (
        "The gateway does not split as requested: the candidate got 900 of 1,000 requests." in page
    )


def test_a_rollout_that_stopped_says_why_and_where_the_requests_go(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    failing = {
        "guard": "Error ratio",
        "stable": "0.1 %",
        "candidate": "3 %",
        "limit": "2 %",
        "n": 1200,
        "verdict": "fail",
        "message": "36 of 1,200 requests failed",
        "source": "Triton request counters",
        "statistic": "always-valid p 0.0003",
    }
    actions.abort(actor=world.lead, rollout_id=rollout.pk, reason="errors")
    Rollout.objects.filter(pk=rollout.pk).update(evidence=[failing])
    client = signed_in(world.lead)

    aborted = page(client.get(URL)).text
    for _ in range(6):
        world.clock.move(20)
        world.reconcile_now(rollout.deployment)
    over = page(client.get(URL)).text

    assert "Aborted" in aborted
    assert "All requests go back to detector:1. The candidate is removed once" in aborted
    assert "Error ratio: 36 of 1,200 requests failed" in aborted
    assert "always-valid p 0.0003" in aborted
    assert "All requests go to detector:1 again. The candidate is removed." in over
    assert "Request another canary" in over


def test_a_completed_rollout_says_what_came_after_and_offers_the_way_back(
    world: World, rollout: Rollout, signed_in: SignIn
) -> None:
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
    )
    for _ in range(8):
        world.clock.move(20)
        world.reconcile_now(rollout.deployment)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.COMPLETED

    page = signed_in(world.member).get(URL).content.decode()

    assert "detector:2 is stable and serves all requests. r1 is removed." in page
    assert "Roll back to r1" in page
    assert f"{URL.removesuffix('rollout')}roll-back?revision=1" in page
