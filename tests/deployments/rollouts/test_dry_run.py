"""A guard that is a dry run is judged and shown, and decides nothing."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.guards.domain import counter_verdicts, evidence
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.guard_set import PlanGuards
from deployments.models import Rollout
from deployments.rollouts.services import actions, reconcile
from deployments.states import RolloutPhase
from tests.deployments.canaries import send, view
from tests.deployments.guarded_rollouts import begin, weights
from tests.deployments.world import World

LATENCY: dict[str, Any] = {"metric": "latency_mean", "max_ratio": 1.25}
ERRORS: dict[str, Any] = {"metric": "error_rate", "max_ratio": 1.25}


def result(guard: str, verdict: Verdict, *, is_dry_run: bool) -> GuardResult:
    return GuardResult(
        guard=guard,
        stable="",
        candidate="",
        limit="",
        n=1,
        verdict=verdict,
        message="",
        is_dry_run=is_dry_run,
    )


def test_a_dry_run_spends_no_alpha() -> None:
    both = PlanGuards.model_validate([ERRORS, LATENCY])
    one = PlanGuards.model_validate([ERRORS, {**LATENCY, "dry_run": True}])
    p95 = {"metric": "latency_p95", "max": 40, "max_ratio": 1.5, "dry_run": True}

    assert (both.tests, one.tests, PlanGuards.model_validate([p95]).tests) == (2, 1, 0)
    assert counter_verdicts.alpha_of_one_test(0.01, tests=0) == 0.01


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.NOT_ENOUGH])
def test_its_verdict_neither_stops_nor_blocks_nor_binds(verdict: Verdict) -> None:
    good = result("Error ratio", Verdict.PASSED, is_dry_run=False)
    dry = result("Mean latency", verdict, is_dry_run=True)

    assert evidence.stopping([good, dry]) == ()
    assert evidence.list_names([good, dry], verdict) == ()
    digests = {
        evidence.digest(rollout_id=1, step_index=0, phase="running", guards=guards)
        for guards in ([good], [good, dry])
    }
    assert len(digests) == 1


def test_a_slow_candidate_is_shown_as_failing_and_promoted(world: World) -> None:
    deployment, rollout = begin(world, guards=[ERRORS, {**LATENCY, "dry_run": True}])
    for _ in range(25):
        world.clock.move(5)
        send(world, "detector-r1", 900, latency_us=20_000)
        send(world, "detector-r2", 100, latency_us=60_000)
        reconcile.advance(rollout_id=rollout.pk)

    shown = view(world, rollout)

    guards = {guard.guard: guard for guard in shown.guards}
    assert (guards["Mean latency"].verdict, guards["Mean latency"].is_dry_run) == ("fail", True)
    assert (guards["Error ratio"].verdict, guards["Error ratio"].is_dry_run) == ("pass", False)
    assert (shown.is_promotable, shown.rollout.phase) == (True, RolloutPhase.RUNNING)
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    assert Rollout.objects.get().step_index == 1
    world.reconcile_now(deployment)
    assert weights(world)["detector-r2-predictor"] == 50
