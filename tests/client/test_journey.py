"""From a version to a promoted canary, with the library, on the real application."""

from __future__ import annotations

from decimal import Decimal

import pytest

from deployments.models import Rollout
from slipway_client import Conflict, Failed, WaitTimedOut
from slipway_client.types import Rollout as RolloutAnswer
from slipway_client.types import RolloutEvent
from tests.client.conftest import ClientOf
from tests.client.test_requests import SPEC
from tests.deployments import canaries
from tests.deployments.world import World


def test_from_a_version_to_a_ready_deployment(world: World, client_of: ClientOf) -> None:
    member, lead = client_of(world.member), client_of(world.lead)
    version = member.versions.get("vision/detector:1")
    cluster = member.account.cluster()
    preflight = member.deployments.check(
        version=version.id,
        cluster=cluster.id,
        name="detector",
        spec=SPEC,
        environment="production",
    )

    change = member.deployments.request(
        version=version.id, cluster=cluster.id, name="detector", spec=SPEC, comment="first"
    )
    lead.changes.approve(lead.changes.get(change.id), comment="fine")
    world.work()
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(world.team.deployments.get())

    assert preflight.can_submit
    assert Decimal(str(preflight.cost.per_hour)) > 0
    assert (change.state, change.revision and change.revision.version) == (
        "submitted",
        "detector:1",
    )
    assert [rule.missing for rule in change.required_approvals] == [1]
    assert member.changes.wait(change.id, seconds=1).state == "done"
    ready = member.deployments.wait_until_ready(change.deployment_id, seconds=1)
    assert ready == member.deployments.get("vision/detector")
    assert (ready.state, ready.desired.stable and ready.desired.stable.number) == ("ready", 1)
    assert [event.message for event in member.deployments.events(ready.id)]
    assert len(member.deployments.revisions(ready.id)) == 1
    assert member.deployments.stats(ready.id).total is None
    assert member.deployments.logs(ready.id).pod == ""


def test_waiting_ends_with_the_reason(world: World, client_of: ClientOf) -> None:
    member = client_of(world.member)
    change = member.deployments.request(
        version=world.version1.pk, cluster=world.cluster_id, name="detector", spec=SPEC
    )

    with pytest.raises(WaitTimedOut, match=f"change request {change.id} is submitted"):
        member.changes.wait(change.id, seconds=0)
    client_of(world.lead).changes.reject(change.id, comment="not on a Friday")
    with pytest.raises(Failed, match="is rejected: not on a Friday"):
        member.changes.wait(change.id, seconds=1)


def test_a_rollout_is_followed_and_aborted(
    world: World, client_of: ClientOf, short_streams: None
) -> None:
    deployment, row = canaries.start(world)
    lead = client_of(world.lead)
    rollout = lead.rollouts.get(row.pk)

    with pytest.raises(Conflict):
        lead.rollouts.promote(rollout)
    seen: list[str] = []
    for item in lead.rollouts.watch(row.pk):
        if isinstance(item, RolloutEvent):
            seen.append(item.message)
        elif not item.is_final and item.phase == "running":
            aborting = lead.rollouts.abort(row.pk, reason="enough")
            assert isinstance(aborting, RolloutAnswer)
        world.clock.move(20)
        world.reconcile_now(deployment)

    row.refresh_from_db()
    assert row.phase == "aborted"
    assert [event.message for event in lead.rollouts.news(row.pk).events] == seen
    assert lead.rollouts.get(row.pk).is_final


def test_a_canary_has_steps_and_the_default_guards(world: World, client_of: ClientOf) -> None:
    deployment = world.serving()
    member = client_of(world.member)

    change = member.deployments.canary(deployment.pk, world.version2.pk, comment="better")

    assert (change.kind, change.state) == ("canary", "submitted")
    assert [step["weight"] for step in change.raw["steps"]] == [5, 25, 50]
    assert change.raw["plan"]["guards"]
    assert not Rollout.objects.exists()


def test_costs_sum_up(world: World, client_of: ClientOf) -> None:
    costs = client_of(world.member).costs.get(team="vision")

    assert costs.total_amount == sum(
        (row.amount for row in costs.rows), costs.idle.amount if costs.idle else Decimal(0)
    )
