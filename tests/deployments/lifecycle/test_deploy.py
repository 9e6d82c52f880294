"""From a request to a serving deployment, and what the rows and the cluster say on the way."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Deployment, DeploymentEvent, Revision
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.states import ChangeState, DeploymentState
from fleet.kube.domain.errors import ObjectInvalid, Unreachable
from fleet.models import Workload
from portal.audit.models import AuditEvent
from tests.deployments.world import World


def test_a_request_is_approved_applied_and_becomes_ready(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft(), comment="please")
    assert change.state == ChangeState.SUBMITTED
    assert world.cluster.writes == []

    world.approved(change)
    deployment = Deployment.objects.get()
    assert deployment.state == DeploymentState.PROGRESSING
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}

    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)
    change.refresh_from_db()
    assert (deployment.state, deployment.state_reason) == (DeploymentState.READY, "")
    assert change.state == ChangeState.DONE
    assert deployment.observed_generation == deployment.desired_generation
    assert deployment.first_ready_at is not None
    assert deployment_selectors.url_of(deployment) == "http://gateway.example/vision/detector"
    assert Workload.objects.get().name == "detector-r1"
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == [
        "change.requested",
        "change.approved",
        "change.applying",
        "deployment.state_changed",
        "deployment.state_changed",
        "change.done",
    ]


def test_plain_triton_gets_deployment_service_and_budget(world: World) -> None:
    deployment = world.serving(engine="triton")

    assert deployment.state == DeploymentState.READY
    assert world.cluster.names("Deployment") == ["detector-r1"]
    assert world.cluster.names("Service") == ["detector-r1"]
    assert world.cluster.names("PodDisruptionBudget") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1": 100}


def test_an_unschedulable_pod_shows_the_message_of_the_cluster(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)
    service = world.cluster.objects["InferenceService", "vision", "detector-r1"]
    labels = service["spec"]["predictor"]["labels"]
    message = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "message": message}

    world.cluster.put_pod("vision", "p", labels, {"phase": "Pending", "conditions": [condition]})
    deployment = world.reconcile_now(deployment_of(change))

    assert deployment.state == DeploymentState.PROGRESSING
    assert deployment.state_reason == f"waiting for free GPU: {message}"


def test_a_first_deploy_that_is_not_ready_in_time_fails_its_request(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)

    world.clock.move(31 * 60)
    deployment = world.reconcile_now(deployment_of(change))
    change.refresh_from_db()

    assert deployment.state == DeploymentState.STOPPED
    assert change.state == ChangeState.FAILED
    assert "not ready in time" in change.state_reason


def test_an_object_that_the_cluster_refuses_is_reported_and_not_metered(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    refusal = ObjectInvalid("spec.predictor.model.runtime: no such runtime")
    # Refused when it is pushed, but not by the dry-run before the approval.
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    world.cluster.refuse["InferenceService"] = refusal

    world.work()
    deployment = Deployment.objects.get()

    assert deployment.state_reason.startswith("the cluster rejected it: spec.predictor")
    assert Workload.objects.filter(retired_at=None).count() == 0


def test_an_unreachable_cluster_leaves_the_state_and_is_reported_once(world: World) -> None:
    deployment = world.serving()
    world.cluster.fail_with = Unreachable("connection refused")

    world.reconcile_now(deployment)
    world.clock.move(60)
    world.reconcile_now(deployment)

    assert deployment.state == DeploymentState.READY
    assert "connection refused" in deployment.state_reason
    assert DeploymentEvent.objects.filter(kind="unreachable").count() == 1
    world.cluster.fail_with = None
    world.clock.move(120)
    assert world.reconcile_now(deployment).state_reason == ""


class WorkerKilled(BaseException):
    """What SIGKILL is to a test."""


def test_a_worker_killed_between_apply_and_record_costs_one_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    # The sixth object is the workload: everything is on the cluster, nothing is recorded.
    world.cluster.after_apply = []
    original = world.cluster.apply

    def apply_then_die(manifest: Any, **options: Any) -> Any:
        made = original(manifest, **options)
        if manifest["kind"] == "InferenceService" and not options.get("dry_run"):
            raise WorkerKilled
        return made

    monkeypatch.setattr(world.cluster, "apply", apply_then_die)
    with pytest.raises(WorkerKilled):
        world.work()
    deployment = Deployment.objects.get()
    assert deployment.observed == {}
    monkeypatch.setattr(world.cluster, "apply", original)

    world.work()
    assert Deployment.objects.get().observed == {}, "the dead worker's lease still holds"
    world.clock.move(91)
    world.work()

    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert Deployment.objects.get().observed["r1"]["stage"] == "accepted"
    pushes = [call for call in world.cluster.writes if call[1] == "InferenceService"]
    assert len(pushes) == 1


def test_retiring_removes_route_then_workload_then_frees_the_name(world: World) -> None:
    deployment = world.serving()
    world.cluster.calls.clear()

    change = world.approved(
        requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    )
    deployment.refresh_from_db()

    first, *between, last = world.cluster.writes
    assert first == ("delete", "HTTPRoute", "detector")
    assert {item[:1] + item[2:] for item in between} == {("delete", "detector-r1")}
    assert last == ("delete", "InferenceService", "detector-r1")
    assert world.cluster.names("PodDisruptionBudget") == []
    assert deployment.is_retired
    assert deployment.state == DeploymentState.RETIRED
    assert change.state == ChangeState.DONE
    assert Workload.objects.filter(retired_at=None).count() == 0
    again = requests.request_deploy(actor=world.member, draft=world.draft())
    assert again.deployment_id != deployment.pk


def test_what_was_deleted_behind_our_back_is_made_again(world: World) -> None:
    deployment = world.serving()
    del world.cluster.objects["InferenceService", "vision", "detector-r1"]

    world.reconcile_now(deployment)

    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert deployment.state == DeploymentState.DEGRADED


def test_a_route_edited_by_hand_is_reverted(world: World) -> None:
    deployment = world.serving()
    route = world.cluster.objects["HTTPRoute", "vision", "detector"]
    route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 7

    world.reconcile_now(deployment)

    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_two_workers_on_one_deployment_push_once(world: World) -> None:
    from deployments.delivery.services import reconcile
    from portal.core import leases

    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    from deployments.lifecycle.services import apply_changes

    apply_changes.apply_change(change_id=change.pk)
    held = leases.claim(Deployment, deployment_of(change).pk, seconds=60)
    assert held is not None

    reconcile.reconcile(deployment_id=deployment_of(change).pk)

    assert world.cluster.writes == []


def test_rejecting_the_first_request_leaves_nothing_half_made(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    decisions.reject(actor=world.lead, change_id=change.pk, comment="use a smaller GPU")
    world.work()

    assert Deployment.objects.get().is_retired
    assert world.cluster.writes == []
    requests.request_deploy(actor=world.member, draft=world.draft())
    assert Deployment.objects.filter(is_retired=False).count() == 1
    assert Revision.objects.count() == 2
    assert ChangeRequest.objects.count() == 2


def test_an_unreachable_cluster_costs_one_timeout_per_sweep(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deployments.delivery.services import reconcile

    for name in ("one", "two", "three"):
        world.approved(requests.request_deploy(actor=world.member, draft=world.draft(name)))
    calls = []
    world.cluster.fail_with = Unreachable("timed out")
    original = world.cluster._answer

    def count() -> None:
        calls.append(1)
        original()

    monkeypatch.setattr(world.cluster, "_answer", count)
    Deployment.objects.update(next_check_at=world.clock.at)

    reconcile.sweep()

    assert len(calls) == 1
    waiting = Deployment.objects.filter(next_check_at__gt=world.clock.at)
    assert waiting.count() == 3
