"""Approved gates stay: no golden request or shown value can be removed or changed afterwards."""

from __future__ import annotations

import pytest

from deployments.changes.services import approvals, decisions, requests
from deployments.models import Approval, ChangeRequest, Deployment, GoldenRequest, Rollout
from deployments.quality.services import golden_requests
from deployments.registry.services import metadata
from portal.core.errors import Conflict
from tests.deployments.canaries import STEPS
from tests.deployments.golden_requests import begin, double, save, served, sweep, weight
from tests.deployments.world import World


def wrong(x: float) -> float:
    return 2 * x + 0.25


def requested_change(world: World, deployment: Deployment) -> ChangeRequest:
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
    )


def approved(world: World, deployment: Deployment) -> ChangeRequest:
    """With the last approval, and before a worker has claimed it."""
    change = requested_change(world, deployment)
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    return ChangeRequest.objects.get(pk=change.pk)


def delete(world: World, golden: GoldenRequest) -> None:
    golden_requests.retire(actor=world.member, golden_id=golden.pk)


def assert_void(change: ChangeRequest) -> None:
    change.refresh_from_db()
    assert change.state == "submitted"
    assert Approval.objects.get(change=change).void_reason == approvals.CHANGED
    assert not Rollout.objects.exists()


def test_a_golden_request_deleted_after_the_approval_makes_it_void(world: World) -> None:
    golden = save(world)
    deployment, _ = served(world, r2=wrong)
    change = approved(world, deployment)
    assert change.golden == [golden.pk]

    delete(world, golden)
    world.work()

    assert_void(change)
    assert (change.golden, weight(deployment)) == ([], 0)


def test_one_saved_or_replaced_after_the_approval_makes_it_void_too(world: World) -> None:
    save(world)
    deployment, _ = served(world, r2=wrong)
    change = approved(world, deployment)

    # An answer that the bad candidate would give, under the name of the good one.
    save(world, "one", 1.0, 2.25)
    world.work()

    assert_void(change)


def test_what_an_approver_saw_cannot_lose_a_gate_before_the_click(world: World) -> None:
    golden = save(world)
    deployment, _ = served(world, r2=wrong)
    change = requested_change(world, deployment)
    shown = change.evidence_hash

    delete(world, golden)

    with pytest.raises(Conflict) as refusal:
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=shown)
    assert refusal.value.code == "evidence_changed"
    assert not Approval.objects.filter(change=change).exists()


def test_a_golden_request_deleted_during_preparation_is_still_sent(world: World) -> None:
    golden = save(world)
    deployment, pods = served(world, r2=wrong)
    rollout = begin(world, deployment)
    assert rollout.golden == [golden.pk]

    delete(world, golden)
    rollout = sweep(world, deployment)

    assert (2, 1.0) in pods.requests
    assert (rollout.phase, weight(deployment)) == ("aborting", 0)
    message = rollout.events.get(kind="aborting").message
    assert message.startswith("aborted: before traffic: 1 of 1 golden requests failed: one")


def test_deleted_while_steps_run_it_stays_a_probe(world: World) -> None:
    golden = save(world)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    assert sweep(world, deployment).phase == "running"

    delete(world, golden)
    pods.requests.clear()
    sweep(world, deployment, seconds=1)

    assert (2, 1.0) in pods.requests


def test_a_golden_request_deleted_after_the_last_recheck_is_still_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = save(world)
    deployment, _ = served(world, r2=wrong)
    approved(world, deployment)
    is_approved = approvals.is_approved_now

    def look_then_lose(change: ChangeRequest) -> bool:
        verdict = is_approved(change)
        delete(world, golden)
        return verdict

    monkeypatch.setattr(approvals, "is_approved_now", look_then_lose)
    world.work()
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    rollout = sweep(world, deployment)

    assert rollout.golden == [golden.pk]
    assert (rollout.phase, weight(deployment)) == ("aborting", 0)


def test_saved_while_the_rollout_runs_it_is_not_part_of_what_was_approved(world: World) -> None:
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    save(world, "late", 5.0, 0.0)

    rollout = sweep(world, deployment, seconds=1)

    assert (rollout.phase, pods.requests) == ("running", [])


@pytest.mark.parametrize(
    ("which", "stated"),
    [
        ("version2", {"accuracy": 0.99}),
        ("version2", {"accuracy": 0.92, "run_url": "https://runs.example/7"}),
        ("version1", {"accuracy": 0.1}),
    ],
)
def test_metadata_that_was_shown_is_part_of_what_was_approved(
    world: World, which: str, stated: dict[str, object]
) -> None:
    deployment, _ = served(world, r2=double)
    change = approved(world, deployment)
    version = getattr(world, which)

    metadata.describe(actor=world.member, version_id=version.pk, metadata=stated)
    world.work()

    assert_void(change)


def test_a_deployment_without_candidate_binds_no_golden_request(world: World) -> None:
    golden = save(world)
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    assert change.golden == []
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    delete(world, golden)
    world.work()

    change.refresh_from_db()
    assert change.state == "applying"
