"""The portal's own requests neither make an idle candidate busy nor bend the split."""

from __future__ import annotations

from datetime import timedelta

from deployments.models import Deployment, Rollout, SyntheticRequest
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.serving.services import synthetic_requests
from tests.deployments import canaries
from tests.deployments.golden_requests import begin, double, save, served, sweep
from tests.deployments.world import World

_PROBES = 4


def _interval(world: World, deployment: Deployment, *, stable: int, candidate: int) -> Rollout:
    """One round of probes, and what both servers counted meanwhile: users' and ours."""
    rollout = sweep(world, deployment, seconds=31)
    canaries.send(world, "detector-r1", stable + _PROBES)
    canaries.send(world, "detector-r2", candidate + _PROBES)
    world.reconcile_now(deployment)
    rollout.refresh_from_db()
    return rollout


def test_synthetic_requests_are_not_counted_as_traffic(world: World) -> None:
    for index in range(_PROBES):
        save(world, f"request {index}", float(index), 2.0 * index)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    sweep(world, deployment)
    sweep(world, deployment, seconds=5)

    for _ in range(30):
        rollout = _interval(world, deployment, stable=9, candidate=1)

    observed = StepObservation.from_json(rollout.observed)
    assert len(pods.requests) > 30 * 2 * _PROBES
    assert (observed.stable_requests, observed.candidate_requests) == (270, 30)
    assert observed.split is not None
    assert observed.split.observed == 0.1
    assert (rollout.phase, observed.is_promotable) == ("running", False)
    assert observed.reason == "30 of 100 requests so far"
    share, errors, latency = rollout.evidence[:3]
    assert share["verdict"] == "pass"
    assert errors["n"] == 30
    # The times of a server that mostly answered the portal say nothing of users.
    assert latency["candidate"] == "not known"


def test_old_synthetic_requests_are_deleted(world: World) -> None:
    deployment = world.serving()
    revision = deployment.stable_revision
    assert revision is not None
    synthetic_requests.note(revision)
    world.clock.move(timedelta(hours=2).total_seconds())

    synthetic_requests.note(revision)

    assert SyntheticRequest.objects.count() == 1
