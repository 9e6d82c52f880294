"""Services that are not quiet: bursts, wandering rates, ramps, stalls, warm-ups; equal revisions and bad ones.

Each cell is a service at some rate of requests and failures, with steps of 10 or 30 minutes, in
which requests depend on each other: both sides burst or stall together, or each side on its own. Also with little history of stable, losses at the gateway, language models and unequal load.
Gate: at most 1% of equal revisions aborted in each cell, but where the candidate has total outages
of its own (bursts of ten times 10%), which is right to abort; and bad ones found within 1.3 times the
figures that the design promised. Beside them the rules of other tools (`rules`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np

from deployments.guards.domain.betting.slots import SLOT_SECONDS
from tests.benchmarks import lanes_twin, language_streams, rules, unequal_load, worlds
from tests.benchmarks.blocks_twin import PAST
from tests.benchmarks.lanes_twin import ALPHA
from tests.benchmarks.language_streams import LanguageWorld
from tests.benchmarks.percentile_streams import BAD, GOOD, SECONDS, PercentileWorld, found_at
from tests.benchmarks.result import Result
from tests.benchmarks.sequential import format_median, median_seconds
from tests.benchmarks.worlds import World

ROLLOUTS: Final = 400
# Through the product's own functions.
_PERCENTILE_ROLLOUTS: Final = 100
_LANGUAGE_ROLLOUTS: Final = 40
_SEED: Final = 20261122
_SLACK: Final = 1.3
_SERVICES: Final = ((10.0, 0.1), (100.0, 0.01), (1000.0, 0.01))
# With steps of 10 minutes only; the last with 1, 10 and 50% of the traffic.
_OTHERS: Final = ((1.0, 0.1), (100.0, 0.001), (1000.0, 0.0001))
_SMALL_WEIGHTS: Final = (0.01, 0.10, 0.50)
_ERRORS: Final = {
    "shared bursts of 1 min": worlds.shared_bursts(12),
    "own bursts of 5 s": worlds.own_bursts(1),
    "own bursts of 1 min": worlds.own_bursts(12),
    "own wander, 20%, 50 s": worlds.own_wander(0.2, 50),
    "own wander, 20%, 4 min": worlds.own_wander(0.2, 240),
    "own wander, 30%, 4 min": worlds.own_wander(0.3, 240),
}
_TIMES: Final = {
    "shared load": worlds.shared_wander(0.5, 100),
    "shared stalls of 10 s": worlds.shared_bursts(2, 20.0),
    "shared ramp to x2": worlds.shared_ramp(2.0, begins=0.1, ends=0.9),
    "shared step to x2": worlds.shared_ramp(2.0, begins=0.17, ends=0.17),
    "own wander of times, 20%, 4 min": worlds.own_wander(0.2, 240),
    "own stalls of 5 s": worlds.own_bursts(1, 5.0),
    "own stalls of 1 min": worlds.own_bursts(12, 5.0),
}
# Readings of stable before the rollout: none, and six minutes.
_LITTLE_HISTORY: Final = (0, 72)
_WARM_UP = 18
# Ten times 10% is an outage.
_EXEMPT: Final = {(0.1, "own bursts of 1 min"), (0.1, "own bursts of 5 s")}
# Median seconds to x2, x3, x5 and x9 that were promised, where half of them are found at all.
_PROMISED: Final = {
    (100.0, 0.01, "own bursts of 5 s"): {3.0: 687, 5.0: 217, 9.0: 67},
    (1000.0, 0.01, "own bursts of 5 s"): {2.0: 307, 3.0: 75, 5.0: 67, 9.0: 67},
    # x9 was 437 before a burst in the last hours made blocks longer (ADR 13): ten of a minute end with the step.
    (100.0, 0.01, "shared bursts of 1 min"): {3.0: 1320, 5.0: 1200, 9.0: 605},
    (1000.0, 0.01, "shared bursts of 1 min"): {2.0: 1320, 3.0: 1320, 5.0: 1200, 9.0: 600},
}


def cells() -> list[World]:
    rows = []
    for per_second, base in _SERVICES:
        for minutes in (10, 30):
            where = f"{per_second:g}/s, {base:.0%}, {minutes} min"
            common = World("", per_second, base, minutes)
            rows += [
                replace(common, name=f"{where}: {name}", failing=failing)
                for name, failing in _ERRORS.items()
            ]
            rows += [
                replace(common, name=f"{where}: {name}", slow=slow) for name, slow in _TIMES.items()
            ]
    return [*rows, *_other_services(), *_little_history(), *_warm_ups()]


def _other_services() -> list[World]:
    rows = []
    for per_second, base in _OTHERS:
        weights = _SMALL_WEIGHTS if per_second == 1000 else worlds.WEIGHTS
        common = World("", per_second, base, weights=weights)
        where = f"{per_second:g}/s, {base:.2%}, {weights[0]:.0%} first"
        rows += [
            replace(common, name=f"{where}: {name}", failing=failing)
            for name, failing in _ERRORS.items()
        ]
    return rows


def _little_history() -> list[World]:
    rows = []
    for known in _LITTLE_HISTORY:
        for per_second in (100.0, 1000.0):
            common = World("", per_second, 0.01, 30, known=known)
            where = f"{per_second:g}/s, {known // 12} min of history"
            rows += [
                replace(common, name=f"{where}: {name}", failing=failing)
                for name, failing in _ERRORS.items()
            ]
            name = "own wander of times, 20%, 4 min"
            rows.append(replace(common, name=f"{where}: {name}", slow=_TIMES[name]))
    return rows


def _warm_ups() -> list[World]:
    """90 s at twice the time, with the default warm-up of two minutes."""
    return [
        World(
            f"{per_second:g}/s: 90 s of warm-up at x2",
            per_second,
            weights=(0.25, 0.5),
            cold_readings=_WARM_UP,
            cold=2.0,
            warm_readings=24,
        )
        for per_second in (10.0, 100.0, 1000.0)
    ]


def is_exempt(world: World) -> bool:
    return (world.base, world.name.partition(": ")[2]) in _EXEMPT


def main() -> Result:
    print(__doc__)
    began = time.monotonic()
    worst = max(_false_aborts(world) for world in cells()) / (100 * ALPHA)
    slowest = max(
        _detection(per_second, base, name, times, promised)
        for (per_second, base, name), figures in _PROMISED.items()
        for times, promised in figures.items()
    )
    print("Lost requests: blocks of 30 s at least, by what the server counts")
    worst = max(worst, *(_lost(world) / (100 * ALPHA) for world in _losses()))
    print(
        "Language models: first token and between tokens at most 1.25 times stable's, aborted requests too"
    )
    worst = max(worst, *(_false_tokens(world) / (100 * ALPHA) for world in language_streams.GOOD))
    slowest = max(slowest, *(_token_detection(world) for world in language_streams.BAD))
    print("Unequal load: a pod of the candidate has a nineteenth of the requests of one of stable")
    worst = max(worst, unequal_load.false_aborts() / (100 * ALPHA))
    print("Percentiles, p95 at most 1.25 times stable's")
    worst = max(worst, *(_false_percentiles(world) / (100 * ALPHA) for world in GOOD))
    slowest = max(slowest, *(_percentile_detection(world) for world in BAD))
    print(f"\n{time.monotonic() - began:.0f} s")
    return Result(
        "dependence", round(max(worst, slowest), 3), 1.0, "of false aborts or time allowed"
    )


def _false_aborts(world: World) -> float:
    """Percent of the rollouts; 0 for a cell that is exempt."""
    streams = worlds.simulate(world, rollouts=ROLLOUTS, seed=_SEED)
    aborted = lanes_twin.aborts(streams)
    lanes_twin.agree_with_product(streams, aborted, rows=1)
    others = {name: rule(streams) for name, rule in rules.rules(world.base).items()}
    share = 100 * float((aborted >= 0).mean())
    line = "  ".join(f"{name} {(found >= 0).mean():.0%}" for name, found in others.items())
    note = "   (exempt)" if is_exempt(world) else ""
    print(f"  {world.name:<52} aborts {share:5.2f}%   {line}{note}", flush=True)
    return 0.0 if is_exempt(world) else share


def _losses() -> list[World]:
    """Losses in bursts, of a server that counts no failure, so that its hour is calm or shows nothing."""
    return [
        World(f"{per_second:g}/s: {name}", per_second, 0.01, 30, failing=_ERRORS[name])
        for per_second in (100.0, 1000.0)
        for name in ("own bursts of 5 s", "own bursts of 1 min", "shared bursts of 1 min")
    ]


def _lost(world: World) -> float:
    streams = worlds.simulate(world, rollouts=ROLLOUTS, seed=_SEED)
    blind = replace(
        streams,
        stable_failed=np.where(
            np.arange(streams.stable_n.shape[1]) < PAST, 0, streams.stable_failed
        ),
    )
    aborted = lanes_twin.aborts(blind, is_latency_judged=False, least_seconds=30.0)
    share = 100 * float((aborted >= 0).mean())
    print(f"  {world.name:<52} aborts {share:5.2f}%", flush=True)
    return share


def _false_tokens(world: LanguageWorld) -> float:
    found = [language_streams.found_at(world, seed=seed) for seed in range(_LANGUAGE_ROLLOUTS)]
    share = 100 * sum(at >= 0 for at in found) / len(found)
    print(f"  {world.name:<52} aborts {share:5.2f}%", flush=True)
    return share


def _token_detection(world: LanguageWorld) -> float:
    found = [
        language_streams.found_at(world, seed=seed, first_step=1)
        for seed in range(_LANGUAGE_ROLLOUTS // 4)
    ]
    seconds = float(np.median([np.inf if at < 0 else (at + 1) * SLOT_SECONDS for at in found]))
    print(f"  {world.name:<52} found after {seconds:.0f} s", flush=True)
    return seconds / (_SLACK * world.seconds)


def _false_percentiles(world: PercentileWorld) -> float:
    found = [found_at(world, np.random.default_rng(seed)) for seed in range(_PERCENTILE_ROLLOUTS)]
    share = 100 * sum(at >= 0 for at in found) / len(found)
    print(f"  {world.name:<52} aborts {share:5.2f}%", flush=True)
    return share


def _percentile_detection(world: PercentileWorld) -> float:
    found = [
        found_at(world, np.random.default_rng(seed), first_step=1)
        for seed in range(_PERCENTILE_ROLLOUTS // 5)
    ]
    seconds = float(np.median([np.inf if at < 0 else (at + 1) * SECONDS for at in found]))
    print(f"  {world.name:<52} found after {seconds:.0f} s", flush=True)
    return seconds / (_SLACK * world.seconds)


def _detection(per_second: float, base: float, name: str, times: float, promised: float) -> float:
    world = World(f"x{times:g}, {per_second:g}/s: {name}", per_second, base, errors=times)
    streams = worlds.simulate(replace(world, failing=_ERRORS[name]), rollouts=ROLLOUTS, seed=_SEED)
    aborted = lanes_twin.aborts(streams, is_latency_judged=False)
    print(f"  {world.name:<52} found after {format_median(aborted)}", flush=True)
    return median_seconds(aborted) / (_SLACK * promised)
