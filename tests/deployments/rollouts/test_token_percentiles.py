"""Percentiles of the first token and of the pauses between tokens, on a real Prometheus."""

from __future__ import annotations

from deployments.models import Rollout
from deployments.states import RolloutPhase
from tests.deployments.rollouts.prometheus_rollouts import begin, line, read
from tests.deployments.world import World
from tests.fixtures.prometheus import RealPrometheus

TTFT = {"metric": "time_to_first_token_p95", "max": 400}
ITL = {"metric": "inter_token_latency_p95", "max_ratio": 1.5}


def series(metric: str, revision: int, fast: int, slow: int) -> dict[str, float]:
    """Of vLLM, in seconds: `fast` took at most 0.02 s, `slow` at most 0.5 s."""
    pod = f"detector-r{revision}-predictor-abc-de"
    bucket = f'{metric}_bucket{{namespace="vision",pod="{pod}",le="%s"}}'
    total = fast + slow
    return {
        bucket % "0.02": fast,
        bucket % "0.04": fast,
        bucket % "0.4": fast,
        bucket % "0.5": total,
        bucket % "+Inf": total,
    }


def first_tokens(revision: int, fast: int, slow: int) -> dict[str, float]:
    return series("vllm:time_to_first_token_seconds", revision, fast, slow)


def pauses(revision: int, fast: int, slow: int) -> dict[str, float]:
    return series("vllm:inter_token_latency_seconds", revision, fast, slow)


def test_each_percentile_has_a_histogram_of_its_own_and_slow_pauses_abort(
    world: World, prometheus: RealPrometheus
) -> None:
    """Answers begin as fast as stable's; in the middle of them the candidate stalls."""
    prometheus.show(
        {
            **first_tokens(1, 900, 9),
            **first_tokens(2, 100, 1),
            **pauses(1, 90_000, 900),
            **pauses(2, 10_000, 100),
        }
    )
    deployment, rollout = begin(world, prometheus.url, TTFT, ITL)
    read(world, deployment)
    assert line(world, rollout, "Inter-token latency p95").message == (
        "no tokens are in the candidate's histogram at this step yet"
    )

    shown = 0
    while Rollout.objects.get().phase == RolloutPhase.RUNNING:
        shown += 1
        assert shown < 60
        prometheus.show(
            {
                **first_tokens(1, 900 + 900 * shown, 9 + 9 * shown),
                **first_tokens(2, 100 + 100 * shown, 1 + shown),
                **pauses(1, 90_000 + 9_000 * shown, 900 + 90 * shown),
                **pauses(2, 10_000 + 800 * shown, 100 + 200 * shown),
            }
        )
        read(world, deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    slow, all_pauses = 200 * shown, 1_000 * shown
    assert rollout.events.get(kind="aborting").message == (
        "aborted: inter-token latency p95: slower than allowed: "
        f"{slow:,} of {all_pauses:,} tokens took more than 40 ms, of stable's 0.99%"
    )
    begins = line(world, rollout, "Time to first token p95")
    assert (begins.verdict, begins.n) == ("pass", 101 * shown)
    assert begins.source == "vLLM histogram of first tokens"
    assert begins.limit == "≤ 400 ms"
