"""Pipelines on their cluster: brought there, kept true, changed, stopped, removed."""

from __future__ import annotations

import pytest

from deployments.changes.selectors.subjects import pipeline_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import apply_changes
from deployments.lifecycle.services import stop as lifecycle_stop
from deployments.models import Deployment, Pipeline
from deployments.pipelines.services import reconcile, try_it
from deployments.pipelines.services import requests as pipeline_requests
from deployments.pipelines.services import stop as pipeline_stop
from deployments.states import ChangeState, DeploymentState, Environment
from fleet.kube.domain.errors import ObjectInvalid, Unreachable
from fleet.observation.services import subscribers
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.deployments.pipelines_world import (
    ENSEMBLE,
    approve,
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


def test_drift_on_the_cluster_is_reverted_and_audited(world: World) -> None:
    pipeline = serving(world)
    key = ("InferenceGraph", "vision", "both")
    world.cluster.objects[key]["spec"]["nodes"]["root"]["routerType"] = "Sequence"

    reconcile_now(pipeline)

    assert world.cluster.objects[key]["spec"]["nodes"]["root"]["routerType"] == "Ensemble"
    event = AuditEvent.objects.get(action="pipeline.drift_reverted")
    assert event.reason == "edited on the cluster: nodes"
    assert pipeline.observed["reverted"] == "edited on the cluster: nodes"
    assert pipeline.state == DeploymentState.READY

    del world.cluster.objects["HTTPRoute", "vision", "both"]
    reconcile_now(pipeline)
    assert ("HTTPRoute", "vision", "both") in world.cluster.objects


def test_a_change_keeps_the_address_and_a_retirement_removes_it(world: World) -> None:
    pipeline = serving(world)
    with refused(world, Conflict, "no_change"):
        pipeline_requests.request_change(actor=world.member, pipeline_id=pipeline.pk, spec=ENSEMBLE)
    change = pipeline_requests.request_change(
        actor=world.member, pipeline_id=pipeline.pk, spec=OTHER
    )
    with refused(world, Conflict, "change_open"):
        pipeline_requests.request_retire(actor=world.member, pipeline_id=pipeline.pk)
    approve(world.lead, change)
    reconcile_now(pipeline)

    change.refresh_from_db()
    assert (change.state, pipeline.desired_generation) == (ChangeState.DONE, 2)
    steps = world.cluster.objects["InferenceGraph", "vision", "both"]["spec"]["nodes"]["root"]
    assert [entry["weight"] for entry in steps["steps"]] == [90, 10]
    assert not AuditEvent.objects.filter(action="pipeline.drift_reverted").exists()

    approve(
        world.lead, pipeline_requests.request_retire(actor=world.member, pipeline_id=pipeline.pk)
    )
    reconcile_now(pipeline)
    assert world.cluster.writes[-2:] == [
        ("delete", "HTTPRoute", "both"),
        ("delete", "InferenceGraph", "both"),
    ]
    assert (pipeline.is_retired, pipeline.state) == (True, DeploymentState.RETIRED)
    assert request_change(world).pipeline.pk != pipeline.pk


def test_a_deployment_in_a_pipeline_is_not_retired_but_can_stop(world: World) -> None:
    pipeline = serving(world)
    deployment = Deployment.objects.get(name="classifier")
    with refused(world, Conflict, "in_a_pipeline"):
        requests.request_retire(actor=world.member, deployment_id=deployment.pk)

    lifecycle_stop.stop(actor=world.member, deployment_id=deployment.pk, reason="too hot")
    reconcile_now(pipeline)

    assert (pipeline.state, pipeline.state_reason) == (
        DeploymentState.DEGRADED,
        "classifier is stopped, so its steps fail.",
    )


def test_an_answerless_cluster_changes_nothing_but_the_reason(world: World) -> None:
    pipeline = serving(world)
    world.cluster.fail_with = Unreachable("no route to host")
    reconcile_now(pipeline, rounds=1)
    assert pipeline.state == DeploymentState.READY
    assert pipeline.state_reason == "Not known: the cluster does not answer (no route to host)."
    assert pipeline.check_failures == 1

    world.cluster.fail_with = None
    reconcile_now(pipeline)
    assert (pipeline.state_reason, pipeline.check_failures) == ("", 0)


def test_a_change_that_the_cluster_refuses_fails_at_its_deadline(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    world.cluster.refuse["InferenceGraph"] = ObjectInvalid("the webhook says no")
    reconcile_now(pipeline_of(change), rounds=1)
    change.refresh_from_db()
    assert change.state in (ChangeState.APPROVED, ChangeState.APPLYING)

    world.clock.move(601)
    reconcile_now(pipeline_of(change), rounds=2)
    change.refresh_from_db()
    assert (change.state, change.state_reason) == (
        ChangeState.FAILED,
        "The cluster rejected it: the webhook says no",
    )


@pytest.mark.parametrize("how", ["reject", "withdraw", "expire"])
def test_what_is_not_approved_leaves_a_free_name_and_an_empty_cluster(
    world: World, how: str
) -> None:
    change = request_change(world)
    writes = list(world.cluster.writes)
    if how == "reject":
        with refused(world, Invalid):
            decisions.reject(actor=world.lead, change_id=change.pk)
        decisions.reject(actor=world.lead, change_id=change.pk, comment="too dear")
    elif how == "withdraw":
        decisions.withdraw(actor=world.member, change_id=change.pk)
    else:
        world.clock.move(15 * 24 * 3600)
        apply_changes.sweep()

    change.refresh_from_db()
    pipeline = Pipeline.objects.get()
    assert (
        change.state
        == {
            "reject": ChangeState.REJECTED,
            "withdraw": ChangeState.WITHDRAWN,
            "expire": ChangeState.EXPIRED,
        }[how]
    )
    assert (pipeline.is_retired, world.cluster.writes) == (True, writes)
    with refused(world, Conflict, "change_state"):
        approve(world.lead2, change)
    assert request_change(world).pipeline.pk != pipeline.pk


def test_two_workers_do_not_write_one_pipeline_at_once(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    apply_changes.sweep()
    writes = list(world.cluster.writes)
    Pipeline.objects.update(lease_until=world.clock.at.replace(year=2099), lease_token="other")

    assert reconcile.reconcile(pipeline_id=pipeline_of(change).pk) is None
    assert world.cluster.writes == writes


def test_a_change_on_the_cluster_requeues_the_pipeline_at_once(world: World) -> None:
    pipeline = serving(world)
    assert pipeline.next_check_at is not None
    assert pipeline.next_check_at > world.clock.at

    labels = [{"slipway.dev/pipeline-id": str(pipeline.pk)}, {"slipway.dev/pipeline-id": "x"}]
    subscribers.notify(world.cluster_id + 1, labels)
    pipeline.refresh_from_db()
    assert pipeline.next_check_at > world.clock.at
    del world.cluster.objects["InferenceGraph", "vision", "both"]
    subscribers.notify(world.cluster_id, labels)

    pipeline.refresh_from_db()
    assert pipeline.next_check_at == world.clock.at
    reconcile.sweep()
    assert "both" in world.cluster.names("InferenceGraph")


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_who_may_not_stop_a_pipeline(world: World, who: str) -> None:
    pipeline = serving(world)
    error = Forbidden if who == "viewer" else NotFound
    with refused(world, error):
        pipeline_stop.stop(actor=getattr(world, who), pipeline_id=pipeline.pk)


def test_elsewhere_a_member_stops_it_at_once_and_a_lead_starts_it_again(world: World) -> None:
    pipeline = serving(world)
    for table in (Deployment, Pipeline):
        table.objects.update(environment=Environment.STAGING)
    waiting = pipeline_requests.request_change(
        actor=world.member, pipeline_id=pipeline.pk, spec=OTHER
    )

    pipeline_stop.stop(actor=world.member, pipeline_id=pipeline.pk, reason="too loud")
    reconcile_now(pipeline)

    assert world.cluster.writes[-2:] == [
        ("delete", "HTTPRoute", "both"),
        ("delete", "InferenceGraph", "both"),
    ]
    assert (pipeline.state, pipeline.is_retired) == (DeploymentState.STOPPED, False)
    assert pipeline.observed_generation == pipeline.desired_generation
    waiting.refresh_from_db()
    assert waiting.state == ChangeState.WITHDRAWN
    stopped = AuditEvent.objects.get(action="pipeline.stopped")
    assert (stopped.actor_name, stopped.reason) == ("member", "too loud")
    with refused(world, Conflict, "stopped"):
        pipeline_requests.request_change(actor=world.member, pipeline_id=pipeline.pk, spec=OTHER)
    with refused(world, Conflict, "not_serving"):
        try_it.send(actor=world.member, pipeline_id=pipeline.pk, body="{}")

    started = pipeline_requests.request_start(actor=world.member, pipeline_id=pipeline.pk)
    reconcile_now(pipeline)
    assert pipeline.state == DeploymentState.STOPPED
    approve(world.lead, started)
    reconcile_now(pipeline)
    start_router(world, pipeline)
    reconcile_now(pipeline)
    assert (pipeline.state, pipeline.is_stopped) == (DeploymentState.READY, False)
    with refused(world, Conflict, "not_stopped"):
        pipeline_requests.request_start(actor=world.member, pipeline_id=pipeline.pk)


def test_in_production_a_stop_is_a_request_that_another_person_approves(world: World) -> None:
    pipeline = serving(world)
    with refused(world, Forbidden, "approval_required"):
        pipeline_stop.stop(actor=world.lead, pipeline_id=pipeline.pk)
    change = pipeline_requests.request_stop(
        actor=world.lead, pipeline_id=pipeline.pk, comment="too loud"
    )
    with refused(world, Forbidden, "four_eyes"):
        approve(world.lead, change)

    approve(world.lead2, change)
    reconcile_now(pipeline)

    change.refresh_from_db()
    assert (change.state, change.state_reason) == (ChangeState.DONE, "Stopped.")
    assert (pipeline.state, world.cluster.names("InferenceGraph")) == (DeploymentState.STOPPED, [])
    stopped = AuditEvent.objects.get(action="pipeline.stopped")
    assert (stopped.actor_name, stopped.reason) == ("slipway", "too loud")
    with refused(world, Conflict, "stopped"):
        pipeline_requests.request_stop(actor=world.member, pipeline_id=pipeline.pk)


def test_what_was_never_approved_is_withdrawn_and_not_stopped(world: World) -> None:
    change = request_change(world)
    with refused(world, Conflict, "not_serving"):
        pipeline_stop.stop(actor=world.member, pipeline_id=pipeline_of(change).pk)


def test_a_stop_ends_what_is_being_applied(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    reconcile_now(pipeline_of(change), rounds=1)

    pipeline_stop.stop(actor=world.lead2, pipeline_id=pipeline_of(change).pk)
    pipeline = reconcile_now(pipeline_of(change))

    change.refresh_from_db()
    assert change.state == ChangeState.FAILED
    assert (pipeline.state, world.cluster.names("InferenceGraph")) == (DeploymentState.STOPPED, [])
