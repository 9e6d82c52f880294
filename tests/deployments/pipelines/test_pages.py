"""The pages of pipelines: requested in the form, approved on the page, tried, changed, retired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.changes.selectors.subjects import pipeline_of
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.pipelines.selectors import pipelines
from deployments.serving.gateways import inference
from deployments.states import Environment
from portal.accounts.models import User
from tests import page as pages
from tests.deployments.pipelines_world import (
    members,
    node,
    reconcile_now,
    request_change,
    serving,
    step,
)
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.portal.many_rows.copies import copies

SignIn = Callable[[User], Client]
NEW = "/vision/pipelines/new"
ROWS = {"steps-TOTAL_FORMS": "6", "steps-INITIAL_FORMS": "0"}
FILLED = {
    **ROWS,
    "name": "both",
    "steps-0-deployment": "detector",
    "steps-0-name": "",
    "steps-2-deployment": "classifier",
    "steps-2-name": "second",
    "steps-2-is_required": "on",
    "comment": "together",
}
ONE = "/vision/pipelines/both"


def test_the_form_requests_a_pipeline_and_a_lead_approves_it(
    world: World, signed_in: SignIn
) -> None:
    members(world)
    page = signed_in(world.member).get(f"{NEW}?kind=ensemble").content.decode()
    assert "Every deployment gets the request" in page
    assert "Only detector serves there" not in page

    sent = signed_in(world.member).post(f"{NEW}?kind=ensemble", FILLED | {"submit": "yes"})

    change = ChangeRequest.objects.get()
    assert (sent.status_code, sent["Location"]) == (302, f"/approvals/{change.pk}")
    assert [
        (entry["deployment"], entry["name"], entry["is_required"])
        for entry in change.pipeline_spec["nodes"][0]["steps"]
    ] == [("detector", "", False), ("classifier", "second", True)]
    review = f"/approvals/{change.pk}"
    assert review in signed_in(world.lead).get(ONE).content.decode()
    shown = pages.page(signed_in(world.lead).get(review))
    assert "Approve" in shown.buttons
    assert "kind: InferenceGraph" in shown.text
    assert "ensemble: detector, second → classifier (required)" in shown.text
    assert "Approve" not in pages.page(signed_in(world.member).get(review)).buttons
    assert "Create pipeline both" in signed_in(world.lead).get("/approvals").content.decode()
    assert "Create pipeline both" in signed_in(world.lead).get("/vision").content.decode()
    assert signed_in(world.lead).get("/jump?q=vision/bo")["Location"] == ONE

    decided = signed_in(world.lead).post(
        review, {"decision": "approve", "evidence_hash": change.evidence_hash}
    )
    assert decided.status_code == 302
    assert reconcile_now(pipeline_of(change)).desired_generation == 1


def test_an_error_shows_at_its_step_and_nothing_is_requested(
    world: World, signed_in: SignIn
) -> None:
    members(world)
    wrong = {**FILLED, "steps-0-weight": "90", "steps-2-weight": "101", "submit": "yes"}
    answer = signed_in(world.member).post(f"{NEW}?kind=splitter", wrong)

    assert answer.status_code == 422
    (row,) = (row for row in pages.page(answer).all("tr") if row.fields("steps-2-weight"))
    assert "Give a weight from 1 to 100 percent." in row.text
    assert not Pipeline.objects.exists()


def test_rows_that_were_not_sent_whole_request_nothing(world: World, signed_in: SignIn) -> None:
    members(world)
    typed = {name: value for name, value in FILLED.items() if name != "steps-TOTAL_FORMS"}

    answer = signed_in(world.member).post(f"{NEW}?kind=ensemble", {**typed, "submit": "yes"})

    assert answer.status_code == 422
    assert "steps-TOTAL_FORMS" in answer.content.decode()
    assert not ChangeRequest.objects.exists()


def test_a_step_that_is_emptied_leaves_the_others(world: World, signed_in: SignIn) -> None:
    serving(world)
    member = signed_in(world.member)
    typed = {"steps-TOTAL_FORMS": "6", "steps-INITIAL_FORMS": "2", "submit": "yes"}
    typed |= {"steps-0-deployment": "", "steps-1-deployment": "classifier"}

    refused = member.post(f"{ONE}/change?kind=ensemble", typed)
    assert refused.status_code == 422
    sent = member.post(f"{ONE}/change?kind=ensemble", typed | {"steps-4-deployment": "detector"})

    assert sent.status_code == 302
    (node,) = ChangeRequest.objects.latest("pk").pipeline_spec["nodes"]
    assert [step["deployment"] for step in node["steps"]] == ["classifier", "detector"]


def test_checks_show_while_typing_and_a_chain_is_explained(world: World, signed_in: SignIn) -> None:
    members(world)
    headers = {**HTMX, "HTTP_HX_TARGET": "side"}
    side = signed_in(world.member).post(f"{NEW}?kind=ensemble", FILLED, **headers)
    assert not pages.page(side).is_whole_page
    shown = side.content.decode()
    assert "kind: InferenceGraph" in shown
    assert "curl --fail-with-body -X POST http://testserver/api/v1/pipelines" in shown
    assert not Pipeline.objects.exists()

    page = signed_in(world.member).get(f"{NEW}?kind=sequence").content.decode()
    assert "Triton ensemble" in page


def test_where_nothing_can_be_it_says_why(world: World, signed_in: SignIn) -> None:
    page = signed_in(world.member).get(NEW).content.decode()
    assert "Deploy at least two models of vision" in page


@pytest.mark.parametrize(
    ("who", "status"), [("stranger", 404), ("viewer", 200), ("member", 200), ("admin", 200)]
)
def test_who_sees_a_pipeline(world: World, signed_in: SignIn, who: str, status: int) -> None:
    request_change(world)
    person = signed_in(getattr(world, who))
    assert person.get(ONE).status_code == status
    assert ("both" in person.get("/vision/pipelines?team=vision").content.decode()) is (
        status == 200
    )
    may = {"stranger": 404, "viewer": 403}
    assert person.get(f"{ONE}/retire").status_code == may.get(who, 200)


def test_it_is_tried_at_its_own_address(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(world)
    sent: list[tuple[str, bytes]] = []

    def post(url: str, body: bytes) -> inference.Answer:
        sent.append((url, body))
        return inference.Answer(200, b'{"detector": {}}', is_cut=False, milliseconds=3.0)

    monkeypatch.setattr(inference, "post_json", post)
    headers = {**HTMX, "HTTP_HX_TARGET": "answer"}
    answer = signed_in(world.viewer).post(f"{ONE}/try", {"body": '{"inputs": []}'}, **headers)

    assert sent == [("http://gateway.example/vision/both", b'{"inputs": []}')]
    assert "200 OK" in answer.content.decode()
    page = signed_in(world.viewer).get(ONE).content.decode()
    assert "curl --json @request.json" in page
    wrong = signed_in(world.viewer).post(f"{ONE}/try", {"body": "{"})
    assert (wrong.status_code, len(sent)) == (422, 1)


def test_steps_are_changed_and_the_pipeline_retired_by_request(
    world: World, signed_in: SignIn
) -> None:
    serving(world)
    member = signed_in(world.member)
    page = member.get(f"{ONE}/change").content.decode()
    assert page.count("selected") >= 2
    other = {
        **ROWS,
        "steps-0-deployment": "classifier",
        "steps-1-deployment": "detector",
        "submit": "yes",
    }
    assert member.post(f"{ONE}/change?kind=sequence", other).status_code == 302
    change = ChangeRequest.objects.first()
    assert change is not None
    assert change.kind == "change"
    diff = member.get(f"/approvals/{change.pk}").content.decode()
    assert "ensemble: detector, classifier (required)" in diff
    assert "sequence: classifier, detector" in diff
    assert member.post(f"/approvals/{change.pk}", {"decision": "withdraw"}).status_code == 302

    assert "Request stop" in member.get(f"{ONE}/stop").content.decode()
    for table in (Deployment, Pipeline):
        table.objects.update(environment=Environment.STAGING)
    assert "Stop pipeline" in member.get(f"{ONE}/stop").content.decode()
    assert member.post(f"{ONE}/stop", {"comment": "too loud"}).status_code == 302
    assert Pipeline.objects.get().is_stopped
    assert "Start again" in member.get(ONE).content.decode()
    assert member.post(f"{ONE}/start", {"comment": ""}).status_code == 302
    started = ChangeRequest.objects.first()
    assert started is not None
    assert started.kind == "start"
    assert member.post(f"/approvals/{started.pk}", {"decision": "withdraw"}).status_code == 302
    assert member.post(f"{ONE}/retire", {"comment": "done"}).status_code == 302
    assert ChangeRequest.objects.order_by("-id").values_list("kind", "state").first() == (
        "retire",
        "submitted",
    )


def test_a_pipeline_of_several_nodes_is_shown_and_changed_through_the_api(
    world: World, signed_in: SignIn
) -> None:
    inner = node("ensemble", step("detector"), step("classifier"), name="deep")
    outer = node(
        "switch",
        step("detector", condition="a"),
        {"node": "deep", "name": "rest", "deployment": ""},
    )
    serving(world, {"nodes": [outer, inner]})
    page = signed_in(world.member).get(ONE).content.decode()
    assert "Change steps" not in page
    assert "all other requests" in page
    assert signed_in(world.member).get(f"{ONE}/change").status_code == 302


def test_what_a_pipeline_can_call_is_by_cluster_and_environment(world: World) -> None:
    members(world)
    detector = Deployment.objects.get(name="detector")
    row = detector.stable_revision
    assert row is not None
    changed: dict[str, dict[str, Any]] = {
        "stopped": {"is_stopped": True},
        "retiring": {"is_retiring": True},
        "waiting": {"stable_revision_id": None},
        "staged": {"environment": "staging"},
    }
    names = list(changed)
    copies(detector, len(names), name=lambda n: names[n - 1])
    for name, values in changed.items():
        Deployment.objects.filter(name=name).update(**values)
    with_key = copies(
        row, 1, number=lambda _: 9, spec=lambda _: {**row.spec, "network": {"access": "keys"}}
    )
    copies(detector, 1, name=lambda _: "closed", stable_revision_id=lambda _: with_key[0].pk)

    places = pipelines.callable_names(team=world.team)

    assert places == {
        (world.cluster_id, "production"): ("classifier", "detector"),
        (world.cluster_id, "staging"): ("staged",),
    }
    told = pipelines.members_of(
        team=world.team,
        cluster_id=world.cluster_id,
        environment="production",
        names=["detector", "stopped", "closed", "staged", "gone"],
    )
    assert {name: member.why_not for name, member in told.items()} == {
        "closed": "closed needs a key, and pipelines on eks-test have none. Could not check InferenceGraph. The "
        "capabilities of the cluster have not been checked yet.",
        "detector": "",
        "staged": "staged is a staging deployment; the pipeline is production.",
        "stopped": "stopped is stopped: start it first.",
    }


def test_of_many_deployments_each_can_be_typed(world: World, signed_in: SignIn) -> None:
    members(world)
    copies(Deployment.objects.get(name="detector"), 60, name=lambda n: f"more-{n}")
    client = signed_in(world.member)

    form = pages.page(client.get("/vision/pipelines/new"))

    assert form.part("members").options.count("more-60") == 1
    assert form.field("steps-0-deployment").attributes["list"] == "members"
    typed = {
        **FILLED,
        "steps-0-deployment": "more-60",
        "steps-2-deployment": "nowhere",
        "submit": "yes",
    }
    refused = client.post("/vision/pipelines/new", typed)
    assert refused.status_code == 422
    assert "nowhere is not one of the available choices" in refused.content.decode()
    assert not Pipeline.objects.exists()
    answer = client.post("/vision/pipelines/new", {**typed, "steps-2-deployment": "detector"})
    assert answer.status_code == 302
    (node,) = ChangeRequest.objects.get().pipeline_spec["nodes"]
    assert [step["deployment"] for step in node["steps"]] == ["more-60", "detector"]
