"""Nothing is promoted on silence; at 100% the recorded figures of stable are the reference."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from deployments.models import Deployment, Rollout, RolloutEvent
from deployments.rollouts.services import actions
from deployments.states import RolloutPhase
from fleet.models import MetricSample, Pod, Workload
from fleet.telemetry.domain import metrics_page
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict
from tests.deployments.canaries import send, start, view
from tests.deployments.guarded_rollouts import begin, weights
from tests.deployments.world import World

NOTHING_NEEDED = [
    {"weight": 10, "soak_seconds": 0, "min_requests": 0},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]
ALL = [
    {"weight": 50, "soak_seconds": 0, "min_requests": 20},
    {"weight": 100, "soak_seconds": 0, "min_requests": 20, "deadline_seconds": 600},
]


def refused(world: World, rollout: Rollout) -> str:
    """The refusal of a promotion by hand, which changes nothing."""
    shown, before = view(world, rollout), (weights(world), AuditEvent.objects.count())
    with pytest.raises(Conflict) as refusal:
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    assert refusal.value.code == "not_promotable"
    assert (weights(world), AuditEvent.objects.count()) == before
    assert Rollout.objects.get().step_index == rollout.step_index
    return refusal.value.message


def both(world: World, deployment: Deployment, stable: int, candidate: int, **of: Any) -> None:
    world.clock.move(5)
    send(world, "detector-r1", stable)
    send(world, "detector-r2", candidate, **of)
    world.reconcile_now(deployment)


def at_all(world: World, *, seconds: int = 15, **of: Any) -> tuple[Deployment, Rollout]:
    """A rollout whose candidate gets everything, after a step in which both had equal parts."""
    deployment, rollout = begin(world, steps=ALL, **of)
    for _ in range(seconds // 5):
        both(world, deployment, 50, 50)
    shown = view(world, rollout)
    assert shown.is_promotable, shown.promotable_reason
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    assert weights(world)["detector-r2-predictor"] == 100
    rollout.refresh_from_db()
    return deployment, rollout


def test_without_a_reading_a_plan_that_needs_no_requests_is_not_promotable(world: World) -> None:
    deployment, rollout = start(world, NOTHING_NEEDED)
    world.clock.move(3600)
    world.reconcile_now(deployment)

    message = refused(world, rollout)

    assert message == "Cannot be promoted yet: the candidate's requests are not known."


def test_readings_without_requests_are_silence_too(world: World) -> None:
    deployment, rollout = start(world, NOTHING_NEEDED)
    both(world, deployment, 90, 0)

    message = refused(world, rollout)

    assert message == "Cannot be promoted yet: no requests were counted at this step yet."


def test_a_strict_guard_without_proof_blocks_a_plan_that_needs_no_requests(world: World) -> None:
    deployment, rollout = begin(world, steps=NOTHING_NEEDED, analysis={"is_strict": True})
    both(world, deployment, 90, 10)

    message = refused(world, rollout)

    assert message == "Cannot be promoted yet: not enough data: error ratio, mean latency."


def test_promoting_fully_is_the_override_and_says_that_evidence_is_missing(world: World) -> None:
    deployment, rollout = start(world, NOTHING_NEEDED)
    world.reconcile_now(deployment)
    shown = view(world, rollout)

    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.PROMOTING
    assert AuditEvent.objects.filter(action="rollout.promoted_fully").count() == 1


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_a_language_model_is_promoted_by_its_own_counters(world: World, server: str) -> None:
    deployment, rollout = begin(world, steps=ALL)
    for number in range(1, 4):
        world.clock.move(5)
        for name in ("detector-r1", "detector-r2"):
            read_page(world, name, page_of(server, answers=40 * number))
        world.reconcile_now(deployment)

    shown = view(world, rollout)

    assert shown.is_promotable, shown.promotable_reason
    assert (shown.stable_requests, shown.candidate_requests) == (80, 80)
    assert [(guard.guard, guard.verdict) for guard in shown.guards] == [
        ("Traffic split", "pass"),
        ("Error ratio", "pass"),
        ("Mean latency", "pass"),
        ("Lost requests", "not known"),
    ]
    assert shown.guards[2].candidate == "250 ms"


def test_a_candidate_that_gets_everything_is_judged_beside_what_stable_showed(
    world: World,
) -> None:
    deployment, rollout = at_all(world)
    for _ in range(2):
        both(world, deployment, 0, 100)

    shown = view(world, rollout)

    assert shown.is_promotable, shown.promotable_reason
    guards = {guard.guard: guard for guard in shown.guards}
    assert (guards["Mean latency"].stable, guards["Mean latency"].limit) == (
        "4.0 ms before",
        "≤ 6.0 ms (1.25 times before)",
    )
    assert guards["Error ratio"].limit == "≤ 0.50% (1.25 times before)"
    verdicts = [guard.verdict for guard in shown.guards]
    assert verdicts == ["pass", "pass", "pass", "not known"]


def test_a_candidate_that_gets_everything_and_turns_slow_is_aborted(world: World) -> None:
    deployment, rollout = at_all(world, is_calm=True)
    for _ in range(20):
        both(world, deployment, 0, 100, latency_us=9000)
        rollout.refresh_from_db()
        if rollout.phase != RolloutPhase.RUNNING:
            break

    assert rollout.phase == RolloutPhase.ABORTING
    aborted = RolloutEvent.objects.get(kind="aborting")
    assert aborted.message.startswith("aborted: mean latency: worse than allowed")
    assert weights(world) == {"detector-r1-predictor": 100}


def test_without_recorded_figures_a_relative_limit_waits_and_absolute_ones_decide(
    world: World,
) -> None:
    steps = [{"weight": 100, "soak_seconds": 0, "min_requests": 20}]
    deployment, rollout = begin(
        world,
        steps=steps,
        guards=[
            {"metric": "error_rate", "max": 0.02, "max_ratio": 1.25},
            {"metric": "latency_mean", "max_ratio": 1.25},
        ],
    )
    for _ in range(3):
        both(world, deployment, 0, 100)

    message = refused(world, rollout)

    assert message == "Cannot be promoted yet: not enough data: mean latency."
    guards = {guard.guard: guard for guard in view(world, rollout).guards}
    assert guards["Error ratio"].verdict == "pass"
    assert guards["Mean latency"].message == (
        "the stable revision no longer gets requests, and none were recorded in the hour before"
    )


def page_of(server: str, *, answers: int) -> str:
    """What vLLM and SGLang say of so many answers of 250 ms each."""
    seconds = answers * 0.25
    if server == "vllm":
        return (
            f'vllm:request_success_total{{finished_reason="stop",model_name="m"}} {answers}.0\n'
            f'vllm:e2e_request_latency_seconds_sum{{model_name="m"}} {seconds}\n'
            f'vllm:e2e_request_latency_seconds_count{{model_name="m"}} {answers}.0\n'
            'vllm:num_requests_running{model_name="m"} 1.0\n'
        )
    return (
        f'sglang:num_requests_total{{model_name="m"}} {answers}.0\n'
        f'sglang:e2e_request_latency_seconds_sum{{model_name="m"}} {seconds}\n'
        f'sglang:e2e_request_latency_seconds_count{{model_name="m"}} {answers}.0\n'
        'sglang:num_running_reqs{model_name="m"} 1.0\n'
    )


def read_page(world: World, name: str, text: str) -> None:
    pod, _ = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid=name,
        defaults={
            "workload": Workload.objects.get(name=name),
            "namespace": "vision",
            "name": name,
            "created_at": world.clock.at,
            "ready_at": world.clock.at.replace(year=2020),
        },
    )
    reading = metrics_page.read(text, models=(), at=world.clock.at)
    MetricSample.objects.create(
        pod=pod,
        at=reading.at,
        running_requests=reading.running_requests,
        **asdict(reading.counters),
    )
