"""Pipelines: requested, refused where they cannot answer, approved by someone else."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.selectors import changes
from deployments.changes.selectors.subjects import pipeline_of
from deployments.changes.services import decisions, requests
from deployments.models import Approval, ChangeRequest, Deployment
from deployments.pipelines.services import requests as pipeline_requests
from deployments.states import ChangeState, DeploymentState, Environment
from fleet.models import Cluster
from portal.accounts.models import Membership
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from portal.notifications.models import Notice
from tests.deployments.decided_changes import rule
from tests.deployments.pipelines_world import (
    approve,
    draft,
    members,
    node,
    reconcile_now,
    request_change,
    serving,
    start_router,
    step,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World

OTHER = {"nodes": [node("splitter", step("detector", weight=90), step("classifier", weight=10))]}


def test_a_pipeline_is_requested_approved_applied_and_answers(world: World) -> None:
    change = request_change(world)
    pipeline = pipeline_of(change)
    assert (pipeline.state, pipeline.spec) == (DeploymentState.PENDING, {})
    writes = list(world.cluster.writes)
    reconcile_now(pipeline)
    assert world.cluster.writes == writes

    approve(world.lead, change, "fine")
    reconcile_now(pipeline)
    assert world.cluster.writes[len(writes) :] == [("apply", "InferenceGraph", "both")]
    assert pipeline.state == DeploymentState.PROGRESSING
    assert pipeline.state_reason == "KServe has not started the router yet."

    start_router(world, pipeline, is_up=False)
    reconcile_now(pipeline)
    assert pipeline.state_reason == (
        "The router is not up: Deployment does not have minimum availability."
    )
    start_router(world, pipeline)
    reconcile_now(pipeline)

    assert world.cluster.writes[len(writes) :] == [
        ("apply", "InferenceGraph", "both"),
        ("apply", "HTTPRoute", "both"),
    ]
    assert (pipeline.state, pipeline.state_reason) == (DeploymentState.READY, "")
    assert pipeline.observed_generation == pipeline.desired_generation == 1
    change.refresh_from_db()
    assert (change.state, change.state_reason) == (ChangeState.DONE, "Ready.")
    graph = world.cluster.objects["InferenceGraph", "vision", "both"]
    urls = [entry["serviceUrl"] for entry in graph["spec"]["nodes"]["root"]["steps"]]
    assert urls == [
        "http://gateway.example/vision/detector/v2/models/detector/infer",
        "http://gateway.example/vision/classifier/v2/models/detector/infer",
    ]


def test_each_transition_is_audited_and_notified(world: World) -> None:
    serving(world)

    events = AuditEvent.objects.filter(object_label__contains="vision/both").order_by("id")
    assert [(event.action, event.actor_name) for event in events] == [
        ("change.requested", "member"),
        ("change.approved", "lead"),
        ("change.applying", "slipway"),
        ("pipeline.state_changed", "slipway"),
        ("pipeline.state_changed", "slipway"),
        ("change.done", "slipway"),
    ]
    assert events[0].object_label == "creation of pipeline vision/both"
    notices = Notice.objects.filter(subject__startswith="Create pipeline both").order_by("id")
    assert [(notice.event, notice.path) for notice in notices] == [
        ("approval.requested", f"/approvals/{events[0].object_id}"),
        ("approval.decided", f"/approvals/{events[0].object_id}"),
        ("change.finished", f"/approvals/{events[0].object_id}"),
    ]


def test_neither_requester_nor_outsider_approves(world: World) -> None:
    members(world)
    change = pipeline_requests.request_create(actor=world.lead, draft=draft(world))

    for who, error in (
        (world.lead, Forbidden),
        (world.member, Forbidden),
        (world.viewer, Forbidden),
        (world.stranger, NotFound),
    ):
        with refused(world, error):
            approve(who, change)
    with refused(world, Conflict, "evidence_changed"):
        decisions.approve(actor=world.lead2, change_id=change.pk, evidence_hash="0" * 64)

    approve(world.lead2, change)
    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


def test_a_rule_for_two_leads_holds_for_pipelines_too(world: World) -> None:
    change = request_change(world)
    rule(world, environments=("production",), kinds=("deploy",))

    with pytest.raises(Conflict, match="changed after"):
        approve(world.lead, change)
    approve(world.lead, change)
    assert not reconcile_now(pipeline_of(change)).desired_generation
    with refused(world, Conflict, "approved_already"):
        approve(world.lead, change)
    approve(world.lead2, change)

    assert reconcile_now(pipeline_of(change)).desired_generation == 1
    given = Approval.objects.order_by("id").values_list("user__username", "void_reason")
    assert list(given) == [("lead", ""), ("lead2", "")]


def test_an_approval_is_void_when_whoever_gave_it_is_no_lead_any_more(world: World) -> None:
    members(world)
    rule(world)
    change = request_change(world)
    approve(world.lead, change)
    Membership.objects.filter(user=world.lead).update(role="member")

    approve(world.lead2, change)

    assert reconcile_now(pipeline_of(change)).desired_generation == 0
    assert Approval.objects.exclude(void_reason="").get().user == world.lead


def test_what_cannot_answer_is_refused_with_its_place(world: World) -> None:
    members(world)
    chained = {"nodes": [node("sequence", step("detector"), step("classifier", data="$response"))]}
    with refused(world, Invalid) as raised:
        pipeline_requests.request_create(actor=world.member, draft=draft(world, chained))
    assert raised[0].fields.keys() == {"nodes.0.steps.1.data"}
    assert "Triton ensemble" in raised[0].message

    for spec, where in (
        ({"nodes": [node("ensemble", step("detector"), step("nobody"))]}, "steps.1.deployment"),
        (
            {"nodes": [node("splitter", step("detector", weight=9), step("classifier", weight=1))]},
            "steps",
        ),
    ):
        with refused(world, Invalid) as raised:
            pipeline_requests.request_create(actor=world.member, draft=draft(world, spec))
        assert f"nodes.0.{where}" in raised[0].fields


def test_names_are_shared_with_deployments(world: World) -> None:
    with_name = serving(world)
    with refused(world, Invalid) as raised:
        pipeline_requests.request_create(actor=world.member, draft=draft(world, name="detector"))
    assert raised[0].fields["name"].startswith("vision/detector already exists on eks-test.")
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(name=with_name.name))
    assert raised[0].fields["name"].startswith("A pipeline already uses the address vision/both.")


def test_a_name_that_a_deployment_took_meanwhile_is_refused_at_approval(world: World) -> None:
    change = request_change(world)
    Deployment.objects.filter(name="detector").update(name="both")
    renamed = {"nodes": [node("ensemble", step("both"), step("classifier"))]}
    ChangeRequest.objects.update(pipeline_spec=pipeline_requests.read_spec(renamed).to_json())
    with pytest.raises(Conflict, match="changed after"):
        approve(world.lead, change)

    with refused(world, Invalid) as raised:
        approve(world.lead, change)
    assert raised[0].fields["name"].startswith("vision/both already exists on eks-test.")


@pytest.mark.parametrize(
    ("version", "is_refused"), [("v0.19.0", True), ("v0.20.0", False), ("v1.0.1", False)]
)
def test_a_splitter_is_refused_where_kserve_loses_requests(
    world: World, version: str, *, is_refused: bool
) -> None:
    members(world)
    names = ("kubernetes", "inference-graph", "gateway-api")
    features: dict[str, Any] = {name: {"is_there": True} for name in names}
    features["kserve"] = {"is_there": True, "version": version}
    Cluster.objects.update(capabilities={"features": features})

    checks = pipeline_requests.preview(actor=world.member, draft=draft(world, OTHER))

    assert checks.is_ok is not is_refused
    check = next(row for row in checks.checks if row.name == "Splitter")
    assert ("drops about 1% of requests" in check.detail) is is_refused


def test_a_cluster_without_inference_graphs_is_refused(world: World) -> None:
    members(world)
    features = {
        "kubernetes": {"is_there": True},
        "inference-graph": {"is_there": False, "why": "The installed KServe does not include it"},
    }
    Cluster.objects.update(capabilities={"features": features})
    with refused(world, Invalid) as raised:
        pipeline_requests.request_create(actor=world.member, draft=draft(world))
    assert raised[0].message == (
        "Cluster: eks-test: The installed KServe does not include it. InferenceGraph is needed for "
        "pipelines of several deployments. "
        "Choose another cluster, or ask a platform admin."
    )


def test_a_deployment_of_another_environment_is_no_member(world: World) -> None:
    members(world)
    Deployment.objects.filter(name="classifier").update(environment=Environment.STAGING)
    with refused(world, Invalid) as raised:
        pipeline_requests.request_create(actor=world.member, draft=draft(world))
    assert raised[0].fields["nodes.0.steps.1.deployment"] == (
        "classifier is a staging deployment; the pipeline is production."
    )


def test_the_inbox_holds_what_waits_for_this_very_person(world: World) -> None:
    change = request_change(world)
    waiting = {
        name: changes.waiting_for(getattr(world, name))
        for name in ("member", "lead", "viewer", "stranger", "admin")
    }
    assert waiting == {
        "member": [],
        "lead": [change.pk],
        "viewer": [],
        "stranger": [],
        "admin": [change.pk],
    }
