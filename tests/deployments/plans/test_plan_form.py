"""Asking for a canary with a whole plan, and the plans that a team keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.models import ChangeRequest, RolloutTemplate
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.world import World
from tests.page import page

URL = "/vision/deployments/detector/canary"
API = "/api/v1/teams/vision/rollout-templates"
TEMPLATES = "/admin/teams/vision/rollout-templates"
SignIn = Callable[[User], Client]
ROWS = {
    "steps-TOTAL_FORMS": "6",
    "steps-INITIAL_FORMS": "0",
    "queries-TOTAL_FORMS": "6",
    "queries-INITIAL_FORMS": "0",
}
SIDE: dict[str, Any] = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "plan-side"}
API_STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 50}]


def plan_rows(world: World, **typed: Any) -> dict[str, Any]:
    return {
        "version": str(world.version2.pk),
        "comment": "",
        "has_plan": "1",
        **ROWS,
        "kind": "canary",
        "steps-0-weight": "10",
        "steps-0-soak_minutes": "1",
        "steps-0-min_requests": "50",
        "steps-0-auto_promote": "on",
        "steps-0-deadline_minutes": "60",
        "steps-1-weight": "100",
        "error_rate-max": "2",
        "latency_mean-max_ratio": "1.3",
        "latency_mean-dry_run": "on",
        "move_alias": "champion",
        **typed,
    }


def test_a_whole_plan_is_requested(world: World, signed_in: SignIn) -> None:
    world.serving()

    answer = signed_in(world.member).post(URL, plan_rows(world))

    change = ChangeRequest.objects.get(kind="canary")
    assert answer["Location"] == f"/approvals/{change.pk}"
    first = change.steps[0]
    assert (first["auto_promote"], first["deadline_seconds"]) == (True, 3600)
    limits = {row["metric"]: (row["max"], row["max_ratio"]) for row in change.plan["guards"]}
    assert limits == {"error_rate": (0.02, None), "latency_mean": (None, 1.3)}
    assert {row["metric"]: row["dry_run"] for row in change.plan["guards"]} == {
        "error_rate": False,
        "latency_mean": True,
    }
    assert change.plan["move_alias"] == "champion"


def test_floors_and_the_robust_payoff_are_set_by_the_form(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    typed = {
        "is_robust": "on",
        "error_rate-max_ratio": "2",
        "error_rate-ignore_below": "0.1",
        "latency_mean-ignore_below": "",
    }

    kept = client.post(URL, plan_rows(world, keep="1", keep_as="careful", **typed))
    form = page(client.get(kept["Location"]))

    plan = RolloutTemplate.objects.get().plan
    floors = {row["metric"]: row["ignore_below"] for row in plan["guards"]}
    assert floors == {"error_rate": 0.001, "latency_mean": 2.0}
    assert plan["analysis"] == {"alpha": 0.01, "is_strict": False, "is_robust": True}
    assert form.field("error_rate-ignore_below").value == "0.1"
    assert form.field("latency_mean-ignore_below").value == ""
    assert form.field("is_robust").is_chosen


def test_blue_green_needs_no_steps(world: World, signed_in: SignIn) -> None:
    world.serving()

    signed_in(world.member).post(URL, plan_rows(world, kind="blue-green"))

    change = ChangeRequest.objects.get(kind="canary")
    assert change.plan["kind"] == "blue-green"
    assert [step["weight"] for step in change.steps] == [0]


def test_time_and_dollars_show_before_anything_is_requested(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    client = signed_in(world.member)

    form = page(client.get(URL))
    side = client.post(
        URL,
        plan_rows(
            world,
            **{
                "steps-0-soak_minutes": "120",
                "steps-0-min_requests": "0",
                "steps-0-deadline_minutes": "121",
            },
        ),
        **SIDE,
    )

    assert "Earliest finish" in form.text
    assert side.status_code == 200
    assert not page(side).is_whole_page
    assert "2 h of soak time" in page(side).part("plan-side").text
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_a_plan_that_cannot_be_is_refused_at_its_place(world: World, signed_in: SignIn) -> None:
    world.serving()
    audited = AuditEvent.objects.count()

    answer = signed_in(world.member).post(URL, plan_rows(world, **{"steps-0-min_requests": "3"}))

    assert answer.status_code == 422
    assert "is promoted automatically and needs min_requests" in answer.content.decode()
    assert not ChangeRequest.objects.filter(kind="canary").exists()
    assert AuditEvent.objects.count() == audited


def test_a_plan_is_kept_and_started_from(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)

    kept = client.post(URL, plan_rows(world, keep="1", keep_as="careful"))
    template = RolloutTemplate.objects.get()
    form = page(client.get(kept["Location"]))

    assert (template.name, template.saved_by) == ("careful", world.member)
    assert kept["Location"] == f"{URL}?template={template.pk}"
    assert form.field("steps-0-deadline_minutes").value == "60"
    assert form.field("error_rate-max").value == "2.0"
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_a_template_is_made_changed_and_removed_without_a_deployment(
    world: World, signed_in: SignIn
) -> None:
    client = signed_in(world.member)
    assert "No templates yet" in client.get(TEMPLATES).content.decode()

    plan = plan_rows(
        world, keep_as="careful", **{"quality-label_drift": "", "quality-output_length": "0.2"}
    )
    made = client.post(f"{TEMPLATES}/edit", plan)
    template = RolloutTemplate.objects.get()
    listed = page(client.get(TEMPLATES)).text
    begun = client.get(f"{TEMPLATES}/edit?template={template.pk}").content.decode()

    assert made["Location"] == TEMPLATES
    assert "Guards error ratio, mean latency." in listed
    assert "1 min, 50 requests auto-promote" in listed
    assert template.plan["quality"] == {"label_drift": None}, "0.2 is the default of the other"
    assert (
        page(begun)
        .group("Answers")
        .text.startswith(
            "Answers output length at most 0.2, structured output at most 0.02, embedding drift at most "
            "0.05, once the service reports answers"
        )
    )
    client.post(f"{TEMPLATES}/{template.pk}/remove")
    assert RolloutTemplate.objects.count() == 0


def test_a_refused_template_keeps_what_was_typed(world: World, signed_in: SignIn) -> None:
    typed = plan_rows(
        world, keep_as="careful", **{"steps-0-min_requests": "3", "quality-label_drift": "7"}
    )

    answer = signed_in(world.lead).post(f"{TEMPLATES}/edit", typed)

    form = page(answer)
    assert answer.status_code == 422
    assert "Enter a number from 0 to 1" in form.text
    assert form.field("keep_as").value == "careful"
    assert RolloutTemplate.objects.count() == 0


@pytest.mark.parametrize(
    ("person", "path", "status"),
    [
        ("viewer", "", 200),
        ("viewer", "/edit", 403),
        ("stranger", "", 404),
        ("stranger", "/edit", 404),
    ],
)
def test_a_viewer_reads_templates_and_an_outsider_does_not(
    world: World, signed_in: SignIn, person: str, path: str, status: int
) -> None:
    assert signed_in(getattr(world, person)).get(f"{TEMPLATES}{path}").status_code == status


def test_the_api_keeps_the_same_templates(world: World) -> None:
    client = APIClient()
    client.force_authenticate(world.member)
    body = {"name": "careful", "steps": API_STEPS, "plan": {"guards": []}}

    made = client.post(API, body, format="json")
    again = client.post(API, {**body, "steps": [{**API_STEPS[0], "weight": 20}]}, format="json")
    listed = client.get(API).json()

    assert (made.status_code, again.status_code) == (201, 201)
    assert [(row["name"], row["steps"][0]["weight"]) for row in listed] == [("careful", 20)]
    assert client.delete(f"{API}/{listed[0]['id']}").status_code == 204
    actions = AuditEvent.objects.filter(object_type="rollouttemplate").order_by("id")
    assert [event.action for event in actions] == [
        "rollout_template.saved",
        "rollout_template.saved",
        "rollout_template.removed",
    ]


@pytest.mark.parametrize(("person", "status"), [("viewer", 403), ("stranger", 404)])
def test_others_keep_no_templates(world: World, person: str, status: int) -> None:
    client = APIClient()
    client.force_authenticate(getattr(world, person))

    answer = client.post(API, {"name": "x", "steps": API_STEPS}, format="json")

    assert answer.status_code == status
    assert RolloutTemplate.objects.count() == 0


@pytest.mark.parametrize(
    "body",
    [
        {"name": " ", "steps": API_STEPS},
        {"name": "x", "steps": []},
        {"name": "x", "steps": API_STEPS, "plan": {"guards": [{"metric": "error_rate"}]}},
    ],
)
def test_a_template_that_no_request_could_have_is_refused(
    world: World, body: dict[str, Any]
) -> None:
    client = APIClient()
    client.force_authenticate(world.lead)

    assert client.post(API, body, format="json").status_code == 422
    assert RolloutTemplate.objects.count() == 0
