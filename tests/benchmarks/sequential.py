"""How often the sequential tests abort a good candidate of a quiet service, and how soon a bad one.

Simulated rollouts, read every five seconds, requests and failures independent:
1. equal revisions, and a candidate exactly at its limits, which is the worst that is allowed;
2. 2, 3, 5 and 9 times the failures, all failing, 40% slower, and bad from the second step on.

The block length of each rollout comes from two simulated hours of stable before it. The tests run in
arrays; the first rollouts of each world go through the product's own code too, and both must abort
at the same reading. Beside them the rules of other tools on the same streams (`rules`).

Gate: at most 1% of the good ones aborted in each world, and bad ones found within 1.3 times the
figures that the design promised.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tests.benchmarks import lanes_twin, rules, worlds
from tests.benchmarks.blocks_twin import Ints
from tests.benchmarks.lanes_twin import ALPHA
from tests.benchmarks.result import Result
from tests.benchmarks.worlds import World

ROLLOUTS = 2_000
_SEED = 20261121
_COMPARED = 3
_SLACK = 1.3
GOOD = (
    World("equal, 100/s, 1%"),
    World("equal, 1/s, 10%", per_second=1, base=0.1),
    World("equal, 10/s, 10%", per_second=10, base=0.1),
    World("equal, 1,000/s, 0.01%", per_second=1000, base=0.0001),
    World("equal, 100/s, 0.1%, 1 to 10%", base=0.001, weights=(0.01, 0.05, 0.10)),
    World("at the limits, 100/s, 1%", errors=1.25, slower=1.25),
    World("at the limits, 1,000/s, 1%", per_second=1000, errors=1.25, slower=1.25),
    World("below the floor, 1,000/s, 0.1%", per_second=1000, base=0.001, errors=2.0),
)


@dataclass(frozen=True, slots=True)
class Bad:
    """`seconds` is the median until it is found that was promised."""

    world: World
    seconds: float
    is_latency_judged: bool = False


def _failing(per_second: float, base: float, seconds: dict[float, float]) -> list[Bad]:
    return [
        Bad(World(f"x{k:g}, {per_second:g}/s, {base:.2%}", per_second, base, errors=k), promised)
        for k, promised in seconds.items()
    ]


BAD = (
    *_failing(100, 0.01, {2: 765, 3: 325, 5: 127, 9: 70, 100: 45}),
    *_failing(1000, 0.01, {2: 180, 3: 75, 5: 55, 9: 50, 100: 5}),
    *_failing(10, 0.1, {2: 930, 3: 510, 5: 330, 9: 187}),
    *_failing(1000, 0.001, {5: 330}),
    # 25 requests of the candidate in a reading: how much their times vary decides how soon.
    Bad(World("40% slower, 100/s, times vary 20%", slower=1.4, shape=25.0), 120, True),
    Bad(World("40% slower, 100/s, exponential", slower=1.4), 700, True),
    Bad(World("3 times slower, 100/s", slower=3.0), 75, True),
    # Times need no hour of history; with none at all blocks are short after the first six minutes.
    Bad(World("40% slower, 20%, after 6 min", slower=1.4, shape=25.0, known=72), 120, True),
    Bad(World("40% slower, 20%, no history", slower=1.4, shape=25.0, known=0), 480, True),
)


def main() -> Result:
    print(__doc__)
    began = time.monotonic()
    worst = max(_false_aborts(world) / (100 * ALPHA) for world in GOOD)
    slowest = max(_detection(bad) for bad in BAD)
    print(f"\n{time.monotonic() - began:.0f} s")
    return Result(
        "sequential", round(max(worst, slowest), 3), 1.0, "of false aborts or time allowed"
    )


def _false_aborts(world: World) -> float:
    """Percent of the rollouts."""
    streams = worlds.simulate(world, rollouts=ROLLOUTS, seed=_SEED)
    aborted = lanes_twin.aborts(streams)
    lanes_twin.agree_with_product(streams, aborted, rows=_COMPARED)
    others = {name: rule(streams) for name, rule in rules.rules(world.base).items()}
    share = 100 * float((aborted >= 0).mean())
    line = "  ".join(f"{name} {(found >= 0).mean():.1%}" for name, found in others.items())
    print(f"  {world.name:<34} aborts {share:5.2f}%   {line}", flush=True)
    return share


def _detection(bad: Bad) -> float:
    """The median time until it is found, of the time that is allowed."""
    streams = worlds.simulate(bad.world, rollouts=ROLLOUTS // 10, seed=_SEED)
    aborted = lanes_twin.aborts(streams, is_latency_judged=bad.is_latency_judged)
    others = {name: rule(streams) for name, rule in rules.rules(bad.world.base).items()}
    line = "  ".join(f"{name} {format_median(found)}" for name, found in others.items())
    ours = median_seconds(aborted)
    print(f"  {bad.world.name:<34} found after {format_median(aborted)}   {line}", flush=True)
    return ours / (_SLACK * bad.seconds)


def median_seconds(aborted: Ints) -> float:
    """Infinite when fewer than half are aborted."""
    return float(np.median(np.where(aborted < 0, np.inf, (aborted + 1) * 5.0)))


def format_median(aborted: Ints) -> str:
    seconds = median_seconds(aborted)
    return f"{seconds:.0f} s" if np.isfinite(seconds) else "never"
