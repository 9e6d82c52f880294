"""Scenes of `make bench NAME=rollout` that need more than a load: dropped connections, tails, warm-up, stalls,
and a candidate that goes bad once it is stable.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import onnxruntime

from tests.e2e.canaries import Scene
from tests.fixtures import dropping_proxy, onnx_models, scraped_gateway
from tests.fixtures.load import Load
from tests.fixtures.onnx_models import Kind
from tests.waiting import wait_for

RATE: Final = 40.0
ROUNDS: Final = 40
# With 720 s of history a chance memory is rare: of a dozen blocks one in four shows some, and then they are 300 s long.
HISTORY_SECONDS: Final = 740
_MOST_SECONDS: Final = 180.0
# One in ten is not more than the 10% that the fast lane finds, and errors are known to be calm after two
# hours only: ten blocks of 30 s at least.
_MOST_SECONDS_BY_BLOCKS: Final = 450.0
# The least that a percentile needs: 13 doublings of its evidence, one with each reading of Prometheus, every 10 s.
# With longer blocks it is promised later: half of what a block could pay is still a detection.
_MOST_SECONDS_BY_READINGS: Final = 300.0
_MOST_TIMES_PROMISED: Final = 2.0
_STEP: Final = {"weight": 50, "soak_seconds": 30, "min_requests": 500}
_DROPPED_SHARE: Final = 0.1
_TAIL_SHARE: Final = 0.1
_TAIL_TIMES: Final = 10
_MEASURED_ROUNDS: Final = 1000
_WARM_UP_SECONDS: Final = 90
_P95: Final = [{"metric": "latency_p95", "max_ratio": 1.25}]


def stop_one_that_drops_connections(scene: Scene) -> float:
    """Its server answers each request that it gets; one in ten never reaches it."""
    version = scene.upload("drops", Kind(rounds=ROUNDS, note="drops"))
    with scene.load(RATE) as load:
        rollout_id = scene.start(version, [{**_STEP, "soak_seconds": 600}])
        _wait_for_weight(scene, rollout_id)
        with dropping_proxy.between_envoy_and_newest(scene.demo.folder, scene.name) as proxy:
            proxy.share = _DROPPED_SHARE
            seconds = scene.seconds_until_aborted(rollout_id)
            ended = scene.wait_for_phase(rollout_id, "aborted")
            dropped = proxy.dropped
    _print(
        "drops 10% of its connections",
        seconds,
        ended,
        f"{dropped} dropped",
        most=_MOST_SECONDS_BY_BLOCKS,
    )
    assert "never came back" in ended["phase_reason"] or "lost" in ended["phase_reason"]
    assert load.counted.failed <= dropped, load.counted.failures
    return seconds


def stop_one_with_a_slow_tail(scene: Scene) -> float | None:
    """One request in ten takes eleven times as long; None where no Prometheus is installed."""
    if scraped_gateway.why_missing:
        print(f"  slow tail: not tried, {scraped_gateway.why_missing}")
        return None
    warm_history(scene)
    # Of what callers wait for, which on a busy machine is mostly not the model.
    heavy = rounds_that_take(_TAIL_TIMES * scene.median_ms())
    version = scene.upload("tail", Kind(rounds=ROUNDS, heavy_rounds=heavy, note="tail"))
    with (
        scraped_gateway.prometheus_of(scene.demo, scene.folder / "prometheus"),
        scene.load(RATE) as load,
    ):
        load.heavy_share = _TAIL_SHARE
        steps = [{**_STEP, "soak_seconds": 600}]
        promised = scene.promised_seconds(steps, guards=_P95)
        most = max(_MOST_SECONDS_BY_READINGS, _MOST_TIMES_PROMISED * promised)
        rollout_id = scene.start(version, steps, guards=_P95)
        _wait_for_weight(scene, rollout_id)
        seconds = scene.seconds_until_aborted(rollout_id, patience=most + 60)
        ended = scene.wait_for_phase(rollout_id, "aborted")
    _print("slow in the tail only", seconds, ended, f"promised {promised:.0f} s", most=most)
    assert "latency p95" in ended["phase_reason"]
    return seconds


def promote_one_that_warms_up(scene: Scene) -> None:
    """90 s at twice the time, then as fast as stable."""
    version = scene.upload("warms-up", Kind(rounds=ROUNDS, heavy_rounds=ROUNDS, note="warm"))
    with scene.load(RATE) as load:
        load.heavy_share = 1.0
        rollout_id = scene.start(version, [_STEP], warmup_seconds=_WARM_UP_SECONDS + 30)
        _wait_for_weight(scene, rollout_id)
        time.sleep(_WARM_UP_SECONDS)
        load.heavy_share = 0.0
        scene.promote_through(rollout_id, [50])
    print("  warms up for 90 s: promoted", flush=True)
    assert load.counted.failed == 0, load.counted.failures


def promote_one_among_stalls(scene: Scene) -> None:
    """Every request of both sides takes three times as long for 10 s of each 60."""
    version = scene.upload("among-stalls", Kind(rounds=ROUNDS, heavy_rounds=2 * ROUNDS, note="too"))
    with scene.load(RATE / 3) as load, _stalling(load):
        rollout_id = scene.start(version, [{**_STEP, "soak_seconds": 180}])
        scene.promote_through(rollout_id, [50])
    print("  shared stalls of 10 s: promoted", flush=True)
    assert load.counted.failed == 0, load.counted.failures


def roll_back_one_that_goes_bad(scene: Scene) -> float:
    """It fails one request in five once it is stable."""
    version = scene.upload("goes-bad", Kind(rounds=ROUNDS, fails_on_mark=True, note="bad"))
    with scene.load(RATE) as load:
        rollout_id = scene.start(version, [_STEP], watch_seconds=900)
        shown = scene.wait_until_promotable(rollout_id, 50)
        scene.promote(shown, fully=True)
        scene.wait_for_phase(rollout_id, "watching")
        load.change_marked_share(0.2)
        seconds = scene.seconds_until_aborted(rollout_id)
        ended = scene.wait_for_phase(rollout_id, "aborted")
        load.change_marked_share(0.0)
    _print("goes bad after its promotion", seconds, ended)
    return seconds


def rounds_that_take(milliseconds: float) -> int:
    """So many products, an even number, by the median of a few runs on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnx_models.build(Kind(rounds=_MEASURED_ROUNDS)).SerializeToString()
    session = onnxruntime.InferenceSession(model, options)
    row = {"x": np.zeros((1, onnx_models.WIDTH), np.float32)}
    taken = []
    for _ in range(9):
        began = time.monotonic()
        session.run(None, row)
        taken.append((time.monotonic() - began) * 1000)
    return 2 * round(milliseconds / statistics.median(taken) * _MEASURED_ROUNDS / 2)


def warm_history(scene: Scene, *, seconds: float = HISTORY_SECONDS) -> None:
    """What stable does before the rollouts: their blocks are chosen by it."""
    with scene.load(RATE):
        time.sleep(seconds)


@contextmanager
def _stalling(load: Load) -> Iterator[None]:
    is_over = threading.Event()

    def stall() -> None:
        while not is_over.wait(50):
            load.heavy_share = 1.0
            is_over.wait(10)
            load.heavy_share = 0.0

    thread = threading.Thread(target=stall, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _wait_for_weight(scene: Scene, rollout_id: int) -> None:
    def has_weight() -> dict[str, Any] | None:
        rollout = scene.read_rollout(rollout_id)
        return rollout if rollout["observed_weight"] == _STEP["weight"] else None

    wait_for("traffic of the candidate", has_weight)


def _print(
    name: str,
    seconds: float,
    ended: dict[str, Any],
    more: str = "",
    *,
    most: float = _MOST_SECONDS,
) -> None:
    said = f"; {more}" if more else ""
    print(f"  {name}: after {seconds:.1f} s{said}: {ended['phase_reason']}", flush=True)
    assert seconds <= most, f"{name}: {seconds:.0f} s"
