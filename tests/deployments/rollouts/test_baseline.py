"""A candidate that is compared with a baseline: as many pods of stable, with the same share of the traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deployments.guards.domain.evidence import Verdict
from deployments.lifecycle.services import stop
from deployments.models import Deployment, Revision, Rollout
from deployments.preflight.selectors import quotas
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.selectors import statistics
from deployments.serving.services import desired_state
from tests.deployments.canaries import send
from tests.deployments.guarded_rollouts import weights
from tests.deployments.rollouts.baselines import STEPS, THREE, WITH, go, request
from tests.deployments.world import World


def begin(world: World, **changed: Any) -> Rollout:
    if changed:
        return _begin(world, changed)
    return world.play("beside a baseline", lambda: _begin(world, {}))


def _begin(world: World, changed: dict[str, Any]) -> Rollout:
    world.approved(request(world, **changed))
    go(world)
    world.cluster.make_ready("detector-r2")
    go(world)
    assert weights(world) == {"detector-r1-predictor": 100}, (
        "no traffic before the baseline is ready"
    )
    world.cluster.make_ready("detector-r3")
    go(world)
    return go(world)


def serve(world: World, *, latency_us: int = 20_000, of_stable_us: int = 20_000) -> Rollout:
    """Six seconds of traffic as the route sends it."""
    shares = weights(world)
    world.clock.move(6)
    for name in ("detector-r1", "detector-r2", "detector-r3"):
        times = {"detector-r1": of_stable_us, "detector-r2": latency_us}.get(name, 20_000)
        send(world, name, 10 * shares.get(f"{name}-predictor", 0), latency_us=times)
    return go(world)


def replicas(world: World, name: str) -> int:
    spec = world.cluster.objects["InferenceService", "vision", name]["spec"]["predictor"]
    assert spec["minReplicas"] == spec["maxReplicas"]
    return int(spec["minReplicas"])


def promote(world: World) -> Rollout:
    rollout = Rollout.objects.get()
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash)
    return rollout


def why(rollout: Rollout) -> str:
    """What was said when it was aborted."""
    return rollout.events.get(kind="aborting").message


def workloads(world: World) -> set[str]:
    return {name for kind, _, name in world.cluster.objects if kind == "InferenceService"}


def test_it_has_the_pods_and_the_traffic_of_the_candidate_and_a_label_of_its_own(
    world: World,
) -> None:
    rollout = begin(world)

    stable, baseline = Revision.objects.get(number=1), Revision.objects.get(number=3)
    assert (baseline.baseline_of, baseline.version) == (stable, stable.version)
    assert rollout.compared_revision == baseline
    assert weights(world) == {
        "detector-r1-predictor": 90,
        "detector-r3-predictor": 5,
        "detector-r2-predictor": 5,
    }
    assert [replicas(world, f"detector-r{n}") for n in (1, 2, 3)] == [3, 1, 1]
    tracks = {
        name: item["metadata"]["labels"].get("slipway.dev/track")
        for (kind, _, name), item in world.cluster.objects.items()
        if kind == "InferenceService"
    }
    assert tracks == {"detector-r1": None, "detector-r2": None, "detector-r3": "baseline"}
    deployment = deployment_selectors.get_visible_by_id(
        actor=world.lead, deployment_id=rollout.deployment_id
    )
    shown = deployment_selectors.revisions_of(deployment)
    assert [(item.role, item.requested_weight) for item in shown] == [
        ("stable", 90),
        ("candidate", 5),
        ("baseline", 5),
    ]
    # Nobody rolls back to it, and its requests are requests of the deployment.
    assert [item.number for item in deployment_selectors.history_of(deployment)] == [2, 1]
    assert [item.number for item in statistics.desired_revisions(deployment)] == [1, 2, 3]
    assert deployment_selectors.is_current(deployment)


def test_a_small_candidate_is_judged_on_its_latency_by_pods_as_idle_as_its_own(
    world: World,
) -> None:
    """Stable's pods have queues that neither of the small sets has. A pause keeps the baseline, because the
    candidate keeps its traffic.
    """
    rollout = begin(world, is_calm=True)
    serve(world, latency_us=28_000, of_stable_us=60_000)
    actions.pause(actor=world.member, rollout_id=rollout.pk)
    for _ in range(25):
        rollout = serve(world, latency_us=28_000, of_stable_us=60_000)
        if rollout.phase != "paused":
            break

    assert rollout.phase == "aborting"
    assert "mean latency" in why(rollout)
    assert weights(world) == {"detector-r1-predictor": 100}


def test_it_grows_with_the_candidate_and_goes_when_it_gets_nothing_any_more(world: World) -> None:
    begin(world)
    rollout = serve(world)
    split = next(item for item in rollouts.evidence_of(rollout) if item.guard == "Traffic split")
    # 50 of 1,000: the rest is what stable and the baseline got.
    assert (split.verdict, split.candidate, split.n) == (Verdict.PASSED, "5.0%", 1000)
    assert rollout.observed["stable_requests"] == 50

    promote(world)
    go(world)
    # Two carry half of the requests of three: no more than each of them did before.
    assert [replicas(world, f"detector-r{n}") for n in (1, 2, 3)] == [3, 2, 2]
    world.cluster.make_ready("detector-r2")
    rollout = go(world)
    assert (rollout.step_index, rollout.promoted_to) == (0, 1), "the baseline still grows"
    world.cluster.make_ready("detector-r3")
    go(world)
    go(world)
    assert weights(world) == {"detector-r3-predictor": 50, "detector-r2-predictor": 50}
    assert replicas(world, "detector-r1") == 3

    serve(world)
    promote(world)
    go(world)
    world.cluster.make_ready("detector-r2")
    go(world)
    rollout = go(world)
    assert weights(world) == {"detector-r2-predictor": 100}
    assert "detector-r3" in workloads(world), "it answers what it has begun"
    world.clock.move(16)
    rollout = go(world)
    go(world)

    assert rollout.phase == "running"
    assert workloads(world) == {"detector-r1", "detector-r2"}
    assert [event.message for event in rollout.events.filter(kind="baseline")] == [
        "the baseline is drained and removed"
    ]


def test_after_promotion_it_is_drained_and_removed_while_the_candidate_is_watched(
    world: World,
) -> None:
    begin(world, steps=STEPS[:1], plan={**WITH, "watch_seconds": 600})
    serve(world)
    promote(world)
    for _ in range(6):
        world.cluster.make_ready("detector-r2")
        rollout = go(world)
    until = rollout.watch_until
    assert rollout.phase == "watching"
    assert workloads(world) == {"detector-r1", "detector-r2", "detector-r3"}

    world.clock.move(16)
    rollout = go(world)
    go(world)

    assert (rollout.phase, rollout.watch_until) == ("watching", until)
    assert workloads(world) == {"detector-r1", "detector-r2"}


def _abort(world: World) -> None:
    actions.abort(actor=world.member, rollout_id=Rollout.objects.get().pk)


def _stop(world: World) -> None:
    stop.stop(actor=world.admin, deployment_id=Deployment.objects.get().pk, reason="now")


@pytest.mark.parametrize(
    ("act", "left"), [(_abort, {"detector-r1"}), (_stop, set())], ids=["abort", "emergency-stop"]
)
def test_it_is_removed_with_the_candidate(
    world: World, act: Callable[[World], None], left: set[str]
) -> None:
    begin(world, spec={**THREE, "environment": "staging"})
    act(world)
    go(world)
    if left:
        assert weights(world) == {"detector-r1-predictor": 100}
    world.clock.move(16)
    go(world)
    go(world)

    assert workloads(world) == left
    assert Deployment.objects.get().baseline_revision is None
    assert quotas.committed_gpus(world.team, quotas.list_running(world.team)) == len(left) * 3


def test_one_that_is_no_longer_ready_sends_its_users_back_to_stable(world: World) -> None:
    begin(world)
    world.cluster.make_ready("detector-r3", is_ready=False, message="crashes")
    go(world)
    assert Rollout.objects.get().phase == "running"
    world.clock.move(121)
    go(world)

    rollout = Rollout.objects.get()
    assert rollout.phase == "aborting"
    assert "the baseline is not ready" in why(rollout)
    assert weights(world) == {"detector-r1-predictor": 100}


def test_a_worker_that_dies_after_it_was_dropped_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction is lost whole; the next worker does it again, and what is not desired is pruned."""
    begin(world)
    _abort(world)
    go(world)
    original, deaths = desired_state.drop_candidate, ["one"]

    def drop(deployment: Deployment) -> None:
        original(deployment)
        if deaths:
            raise RuntimeError(deaths.pop())

    monkeypatch.setattr(desired_state, "drop_candidate", drop)
    world.clock.move(16)
    with pytest.raises(RuntimeError):
        go(world)
    assert Deployment.objects.get().baseline_revision is not None
    for model in (Rollout, Deployment):
        model.objects.update(lease_until=world.clock.at)
    world.clock.move(1)
    go(world)
    rollout = go(world)

    assert rollout.phase == "aborted"
    assert workloads(world) == {"detector-r1"}
