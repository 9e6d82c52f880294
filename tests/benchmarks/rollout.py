"""Canaries under load, with real Triton and Envoy: good ones, and those that must be stopped or kept.

- v2 is good: a lead promotes it 5 -> 25 -> 50 -> 100 %, and a second one is aborted by hand at 25 %;
  the observed share is inside its band at every click, and no request of at least 20,000 fails.
- v3 fails 3% of requests, v4 is 40% slower: each is aborted automatically, v4 within 180 s. How many products
  are 40% is measured before: requests to two kinds, alone.
- v5 gets a handful of requests: neither promoted nor aborted, and says why.
- v6 drifts in its outputs: stopped.
- v7 fails every request: how long after its first failure the last one came, against one
  analysis interval + 2 s. That is the value of this benchmark.
- One drops 10% of its connections: aborted within 450 s. One is slow in its tail only: within twice what its plan promised. One warms up for 90 s,
  one serves among stalls that both sides share: promoted. One goes bad after its promotion: rolled back within 180 s.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.benchmarks import rollout_scenes
from tests.benchmarks.result import Result
from tests.e2e.canaries import Scene, is_share_inside_band
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import INSTANCE_TYPE, Person
from tests.fixtures.onnx_models import Kind
from tests.waiting import wait_for

LEAST_REQUESTS: Final = 20_000
RATE: Final = 150.0
# Metrics are polled every 5 s, and each poll is followed by an analysis.
ANALYSIS_SECONDS: Final = 5.0
BOUND_SECONDS: Final = ANALYSIS_SECONDS + 2
STABLE: Final = Kind(rounds=40)
_SLOW_ROUNDS: Final = 100
_MOST_SECONDS: Final = 180.0
# What else the machine does slows both pods of stable alike, so it needs no longer blocks; with one pod it
# cannot be told from stable's own drift, and blocks are minutes long.
_TWO_PODS: Final[dict[str, Any]] = {
    "instance_type": INSTANCE_TYPE,
    "min_replicas": 2,
    "max_replicas": 2,
}


def steps(*weights: int, min_requests: int = 100) -> list[dict[str, Any]]:
    return [{"weight": w, "soak_seconds": 5, "min_requests": min_requests} for w in weights]


def promote_a_good_one(scene: Scene) -> None:
    """Raises AssertionError for one request that fails at any time."""
    good = scene.upload("good", Kind(rounds=STABLE.rounds, note="v2"))
    other = scene.upload("good-too", Kind(rounds=STABLE.rounds, note="v2b"))
    with scene.load(RATE) as load:
        rollout_id = scene.start(good, steps(5, 25, 50))
        for shown in scene.promote_through(rollout_id, [5, 25, 50]):
            share = shown["observed_share"]
            band = f"{shown['share_low']:.1%} to {shown['share_high']:.1%}"
            print(
                f"  {shown['requested_weight']:>3} % requested, {share:.1%} observed, band {band}"
            )
            assert is_share_inside_band(shown), shown
        aborted = scene.start(other, steps(25))
        scene.wait_until_promotable(aborted, 25)
        scene.abort(aborted, "tried by the benchmark")
        scene.wait_for_phase(aborted, "aborted")
        wait_for(
            f"{LEAST_REQUESTS} requests",
            lambda: load.counted.sent >= LEAST_REQUESTS,
        )
    print(f"  v2 promoted, v2b aborted by hand: {load.counted.sent:,} requests sent,")
    print(f"  {load.counted.answered:,} answered, failures {dict(load.counted.failures)}")
    assert load.counted.failed == 0
    assert load.counted.answered == load.counted.sent


def stop_by_itself(
    scene: Scene,
    name: str,
    kind: Kind,
    *,
    rate: float,
    marked_share: float = 0.0,
    weight: int = 25,
) -> float:
    version = scene.upload(name, kind)
    with scene.load(rate, marked_share=marked_share):
        rollout_id = scene.start(version, steps(weight, min_requests=2_000))
        scene.wait_for_phase(rollout_id, "running")
        seconds = scene.seconds_until_aborted(rollout_id)
        ended = scene.wait_for_phase(rollout_id, "aborted")
    print(
        f"  {name}: aborted automatically after {seconds:.1f} s: {ended['phase_reason']}",
        flush=True,
    )
    return seconds


def keep_a_starved_one(scene: Scene) -> None:
    version = scene.upload("starved", Kind(rounds=STABLE.rounds, note="v5"))
    rollout_id = scene.start(version, steps(50))
    scene.wait_for_phase(rollout_id, "running")
    with scene.load(0.2):
        time.sleep(45)
    shown = scene.read_rollout(rollout_id)
    print(f"  starved: {shown['phase']}, {shown['promotable_reason']}")
    assert shown["phase"] == "running"
    assert not shown["is_promotable"]
    scene.abort(rollout_id, "the benchmark goes on")
    scene.wait_for_phase(rollout_id, "aborted")


def stop_before_traffic(scene: Scene) -> None:
    version = scene.upload("drifting", Kind(rounds=STABLE.rounds, drift=0.2, note="v6"))
    with scene.golden_request(), scene.load(20) as load:
        ended = scene.wait_for_phase(scene.start(version, steps(25)), "aborted")
    print(f"  drifting: stopped before traffic: {ended['phase_reason']}")
    assert ended["candidate_requests"] in {None, 0}
    assert load.counted.failed == 0


def seconds_of_failures(scene: Scene) -> float:
    """From the first failed request to the last one, of a candidate that fails all of them."""
    version = scene.upload("broken", Kind(rounds=STABLE.rounds, fails_on_mark=True, note="v7"))
    with scene.load(50, marked_share=1.0) as load:
        rollout_id = scene.start(version, steps(25))
        scene.wait_for_phase(rollout_id, "aborted")
        last = load.counted.last_failure_at
        assert load.counted.first_failure_at
        assert last
    return last - load.counted.first_failure_at


def stop_a_slower_one(scene: Scene, fast_ms: float) -> None:
    """`fast_ms` is what a request of STABLE takes, so that the time of a product is known."""
    slow_ms = scene.median_ms()
    of_one = (slow_ms - fast_ms) / (_SLOW_ROUNDS - STABLE.rounds)
    assert of_one > 0, f"{STABLE.rounds} rounds: {fast_ms:.1f} ms, {_SLOW_ROUNDS}: {slow_ms:.1f} ms"
    # Of what callers wait for, which is more than the server's own time.
    rounds = _SLOW_ROUNDS + 2 * round(0.4 * slow_ms / of_one / 2)
    print(
        f"  {_SLOW_ROUNDS} rounds take {slow_ms:.1f} ms, {rounds} are taken as 40% slower",
        flush=True,
    )
    rollout_scenes.warm_history(scene)
    # Of two pods each, times are comparable where both get about as much.
    seconds = stop_by_itself(
        scene, "40-percent-slower", Kind(rounds=rounds, note="v4"), rate=40, weight=50
    )
    assert seconds <= _MOST_SECONDS, f"40% slower: {seconds:.0f} s"


def main() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        demo = DemoProcess(Path(folder) / "var")
        demo.start()
        try:
            people = Person(demo, "member"), Person(demo, "lead")
            value = _run(lambda name: Scene(demo, *people, Path(folder), name, most_in_flight=64))
        finally:
            demo.stop()
    return Result("rollout", round(value, 2), BOUND_SECONDS, "s")


def _run(scene_named: Callable[[str], Scene]) -> float:
    scene = scene_named("canary")
    scene.begin(STABLE)
    fast_ms = scene.median_ms()
    promote_a_good_one(scene)
    stop_by_itself(
        scene,
        "errs-on-3-percent",
        Kind(rounds=40, fails_on_mark=True),
        rate=RATE,
        marked_share=0.03,
    )
    keep_a_starved_one(scene)
    value = seconds_of_failures(scene)
    stop_before_traffic(scene)
    rollout_scenes.stop_one_that_drops_connections(scene)
    rollout_scenes.promote_one_that_warms_up(scene)
    scene.retire()
    # Of their own: with weights that moved all the time, the blocks of times are minutes long.
    tail = scene_named("tail")
    tail.begin(STABLE, **_TWO_PODS)
    rollout_scenes.stop_one_with_a_slow_tail(tail)
    tail.retire()
    stalling = scene_named("stalling")
    stalling.begin(Kind(rounds=STABLE.rounds, heavy_rounds=2 * STABLE.rounds))
    rollout_scenes.promote_one_among_stalls(stalling)
    rollout_scenes.roll_back_one_that_goes_bad(stalling)
    stalling.retire()
    slow = scene_named("slow")
    slow.begin(Kind(rounds=_SLOW_ROUNDS), **_TWO_PODS)
    stop_a_slower_one(slow, fast_ms)
    return value
