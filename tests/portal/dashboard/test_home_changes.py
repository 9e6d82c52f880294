"""Home says what changed since yesterday, as one person tells another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments import audit_actions
from deployments.changes.services import decisions, requests
from deployments.models import Deployment
from deployments.registry.services import transitions
from deployments.states import DeploymentState
from fleet.models import BudgetAlert
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core import clock
from tests.deployments.signed_in import start_canary
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]


def changes_of(world: World, signed_in: SignIn) -> Part:
    return page(signed_in(world.viewer).get("/vision")).part("changes")


def lines_of(world: World, signed_in: SignIn) -> list[str]:
    """Return the text of each line, without its time."""
    return [next(line.all("span")).text for line in changes_of(world, signed_in).all("li")]


def add_event(world: World, label: str, action: str, **more: object) -> None:
    AuditEvent.objects.create(
        **{
            "at": clock.now(),
            "action": action,
            "actor_name": "slipway",
            "team_slug": "vision",
            "object_type": "deployment",
            "object_id": "1",
            "object_label": label,
            **more,
        }
    )


def fail_and_recover(world: World, deployment: Deployment) -> None:
    states = (DeploymentState.READY, DeploymentState.DEGRADED, DeploymentState.READY)
    for before, after in pairwise(states):
        add_event(
            world,
            str(deployment),
            audit_actions.DEPLOYMENT_STATE.code,
            before={"state": before},
            after={"state": after},
        )
        world.clock.move(60)


def test_decisions_name_who_decided_and_lead_to_the_request(
    world: World, signed_in: SignIn
) -> None:
    approved = requests.request_deploy(actor=world.member, draft=world.draft("street"))
    world.approved(approved)
    world.clock.move(60)
    rejected = requests.request_deploy(actor=world.member, draft=world.draft("yard"))
    decisions.reject(actor=world.lead, change_id=rejected.pk, comment="not now")

    shown = changes_of(world, signed_in)

    assert lines_of(world, signed_in) == [
        "lead rejected deployment of yard",
        "lead approved deployment of street",
    ]
    assert shown.links["deployment of yard"] == f"/approvals/{rejected.pk}"
    assert shown.links["deployment of street"] == f"/approvals/{approved.pk}"


def test_versions_deployments_and_budgets_have_their_line_and_page(
    world: World, signed_in: SignIn
) -> None:
    version = world.version2
    transitions.to_quarantined(version=version, facts={}, reason="a pickle", actor=SYSTEM)
    world.clock.move(60)
    fail_and_recover(world, Deployment(name="street", team=world.team))
    add_event(
        world, "line-3 for vision/street", "caller_key.created", object_type="callerkey",
        actor_id=world.lead.pk, actor_name="lead",
    )  # fmt: skip
    world.clock.move(60)
    BudgetAlert.objects.create(
        team=world.team,
        month=world.clock.at.date().replace(day=1),
        threshold="80%",
        budget_amount=Decimal(100),
        spent_amount=Decimal(81),
        at=world.clock.at,
    )

    shown = changes_of(world, signed_in)

    month = f"{world.clock.at:%B}"
    assert lines_of(world, signed_in) == [
        f"Budget for {month} is 80% spent",
        "lead created the key line-3 for street",
        "street recovered",
        "street is failing",
        "detector:2 was quarantined",
    ]
    assert shown.links["detector:2"] == "/vision/models/detector/2"
    assert shown.links["street"] == "/vision/deployments/street/timeline"
    assert shown.links["line-3 for street"] == "/vision/deployments/street/callers"
    assert shown.links[f"Budget for {month}"] == "/costs?team=vision"


def test_an_aborted_canary_is_one_line(world: World, signed_in: SignIn) -> None:
    deployment, _ = start_canary(world)
    signed_in(world.member).post(
        "/vision/deployments/detector/rollout", {"action": "abort", "reason": "worse"}
    )
    world.reconcile_now(deployment)

    lines = lines_of(world, signed_in)

    assert lines[0] == "member aborted the rollout of detector"
    assert "canary of detector failed" not in lines


def test_steps_of_a_start_and_what_is_older_than_a_day_are_left_out(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    assert lines_of(world, signed_in) == ["lead approved deployment of detector"]

    world.clock.move(timedelta(hours=24, minutes=5).total_seconds())

    assert "Nothing changed since yesterday." in changes_of(world, signed_in).text


def test_what_repeats_is_listed_once_and_eight_lines_are_shown(
    world: World, signed_in: SignIn
) -> None:
    add_event(world, "nlp/other", audit_actions.CHANGE_FAILED.code, team_slug="nlp")
    for _ in range(3):
        fail_and_recover(world, Deployment(name="street", team=world.team))
    assert lines_of(world, signed_in) == ["street recovered", "street is failing"]

    for number in range(9):
        add_event(world, f"vision/other{number}", audit_actions.CHANGE_FAILED.code)
        world.clock.move(60)

    assert lines_of(world, signed_in) == [f"other{number} failed" for number in range(8, 0, -1)]


def test_changes_take_as_many_queries_for_many_events_as_for_few(
    world: World, signed_in: SignIn
) -> None:
    client = signed_in(world.viewer)
    client.get("/vision")
    with CaptureQueriesContext(connection) as few:
        client.get("/vision")
    for number in range(20):
        add_event(world, f"vision/other{number}", audit_actions.CHANGE_FAILED.code)

    with CaptureQueriesContext(connection) as many:
        client.get("/vision")

    assert len(many) == len(few)
