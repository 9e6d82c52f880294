"""The tests of percentiles in a rollout: their state, and how one more reading updates it.

Pure, and in the same two lanes as the tests on counters (`sequential_tests`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deployments.guards.domain import histograms
from deployments.guards.domain.betting import blocks, lanes, slow_share
from deployments.guards.domain.betting.blocks import DEFAULT_SECONDS
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.lanes import Claim
from deployments.guards.domain.betting.rates import RateLimit
from deployments.guards.domain.histograms import Counts
from deployments.guards.domain.load import LoadDifference
from deployments.guards.domain.percentiles import PercentileGuard

# Of this rollout, from which stable's own counts say more than those since its start.
_ENOUGH_OF_ROLLOUT: Final = 1000
_COMPLETE: Final = 0.9


@dataclass(frozen=True, slots=True)
class OpenHistogramBlock:
    stable: Counts = field(default_factory=dict)
    candidate: Counts = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PercentileTests:
    """The state of the percentile tests. `stable` and `candidate` are the counts of this step.

    `before` is what stable had counted when the rollout began, `since` what it has counted since. `bounds` are
    those of each metric that are bet on, chosen once; `peaks` the highest mean capital of each metric and lane.
    """

    stable: Counts = field(default_factory=dict)
    candidate: Counts = field(default_factory=dict)
    before: Counts = field(default_factory=dict)
    since: Counts = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    open: OpenHistogramBlock = field(default_factory=OpenHistogramBlock)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    block_seconds: float = DEFAULT_SECONDS
    # Whether the open block is one of comparable load.
    is_comparable: bool = True

    @property
    def past(self) -> Counts:
        """The distribution of stable, as far as it is known."""
        is_enough = histograms.total(self.since) >= _ENOUGH_OF_ROLLOUT
        return self.since if is_enough else histograms.add(self.before, self.since)

    def get_claim(self, guard: PercentileGuard, key: str) -> Claim:
        return self.claims.get(f"{guard.metric} {key}", Claim())

    def bound_for(self, limit: float) -> float | None:
        """Return the first bound that is not below the limit."""
        known = histograms.finite_bounds(self.candidate or self.past)
        return next((bound for bound in known if bound >= limit), None)

    def bounds_of(self, guard: PercentileGuard) -> tuple[float, ...]:
        return self.bounds.get(guard.metric, ())

    def to_json(self) -> dict[str, Any]:
        return {
            "stable": _counts_to_json(self.stable),
            "candidate": _counts_to_json(self.candidate),
            "before": _counts_to_json(self.before),
            "since": _counts_to_json(self.since),
            "bounds": {metric: list(bounds) for metric, bounds in self.bounds.items()},
            "open": {
                "stable": _counts_to_json(self.open.stable),
                "candidate": _counts_to_json(self.open.candidate),
                "seconds": self.open.seconds,
            },
            "claims": {name: claim.to_json() for name, claim in self.claims.items()},
            "peaks": dict(self.peaks),
            "block_seconds": self.block_seconds,
            "is_comparable": self.is_comparable,
        }


def from_json(stored: Mapping[str, Any]) -> PercentileTests:
    block = stored["open"]
    return PercentileTests(
        stable=_counts(stored["stable"]),
        candidate=_counts(stored["candidate"]),
        before=_counts(stored["before"]),
        since=_counts(stored["since"]),
        bounds={metric: tuple(bounds) for metric, bounds in stored["bounds"].items()},
        open=OpenHistogramBlock(
            _counts(block["stable"]), _counts(block["candidate"]), block["seconds"]
        ),
        claims={name: lanes.from_json(claim) for name, claim in stored["claims"].items()},
        peaks=stored["peaks"],
        block_seconds=stored["block_seconds"],
        is_comparable=stored["is_comparable"],
    )


Guards = tuple[PercentileGuard, ...]


def next_step(
    tests: PercentileTests, guards: Guards, payoff: Payoff, *, block_seconds: float
) -> PercentileTests:
    """Return the state at the beginning of a step; the open block counts as it is.

    Blocks of a histogram are two scrapes long at least, unless stable is calm.
    """
    closed = _close_block(tests, guards, payoff)
    after = replace(
        closed,
        stable={},
        candidate={},
        claims={name: claim.next_step() for name, claim in closed.claims.items()},
    )
    return with_blocks(after, block_seconds)


def with_blocks(tests: PercentileTests, block_seconds: float) -> PercentileTests:
    return replace(tests, block_seconds=blocks.lengthen_for_histogram(block_seconds))


def begin(tests: PercentileTests, before: Counts) -> PercentileTests:
    """Store what stable had counted at the first reading of the rollout, which is its past."""
    return tests if tests.before else replace(tests, before=before)


def advance(
    tests: PercentileTests,
    *,
    stable: Counts,
    candidate: Counts,
    guards: Guards,
    seconds: float,
    payoff: Payoff = Payoff.CAPPED,
    load: LoadDifference = LoadDifference.NONE,
) -> PercentileTests:
    """Update the tests with the increase of both histograms since the last reading. A bet depends on
    the past before it only. With another `load` the limits beside stable are not tested, but by the fast
    lane where the candidate's pods have less to do. A block ends where the load becomes comparable or
    stops to be.
    """
    tests = _with_bounds(tests, guards)
    is_comparable = load == LoadDifference.NONE
    if is_comparable != tests.is_comparable:
        tests = replace(_close_block(tests, guards, payoff), is_comparable=is_comparable)
    tests = replace(
        tests,
        open=OpenHistogramBlock(
            histograms.add(tests.open.stable, stable),
            histograms.add(tests.open.candidate, candidate),
            tests.open.seconds + seconds,
        ),
    )
    is_fast = load != LoadDifference.MORE
    tests = _bet_reading(tests, guards, stable, candidate, is_compared=is_fast)
    if tests.open.seconds >= _COMPLETE * tests.block_seconds:
        tests = _close_block(tests, guards, payoff)
    return replace(
        tests,
        stable=histograms.add(tests.stable, stable),
        candidate=histograms.add(tests.candidate, candidate),
        since=histograms.add(tests.since, stable),
    )


def evidence_of(guard: PercentileGuard, tests: PercentileTests) -> float:
    """Return the evidence against the limits over the rollout, to compare with 1 / the level of one test."""
    absolute = 0.0 if guard.max is None else tests.get_claim(guard, "max").evidence
    lane_peaks = [tests.peaks.get(f"{guard.metric} {lane}", 1.0) for lane in ("slow", "fast")]
    return max(absolute, max(lane_peaks) / 2 if guard.max_ratio is not None else 0.0)


def is_within(guard: PercentileGuard, tests: PercentileTests, *, alpha: float) -> bool:
    """Whether this step has shown that all limits are met, at every bound near the percentile."""
    needed, past = 1 / alpha, tests.past
    if guard.max is not None and tests.get_claim(guard, "max").within.value < needed:
        return False
    if guard.max_ratio is None:
        return True
    near = [
        bound
        for bound in tests.bounds_of(guard)
        if slow_share.share_above(past, bound) >= slow_share.ignored_share(guard.share)
    ]
    return bool(near) and all(
        max(
            tests.get_claim(guard, f"ratio {bound!r}").within.value,
            tests.get_claim(guard, f"floor {bound!r}").within.value,
        )
        >= needed
        for bound in near
    )


def _with_bounds(tests: PercentileTests, guards: Guards) -> PercentileTests:
    past = tests.past
    missing = [guard for guard in guards if guard.metric not in tests.bounds]
    if not missing or histograms.total(past) < slow_share.LEAST_PAST:
        return tests
    chosen: dict[str, tuple[float, ...]] = {
        guard.metric: slow_share.choose_bounds(past, guard.share) for guard in missing
    }
    return replace(tests, bounds={**tests.bounds, **chosen})


def _close_block(tests: PercentileTests, guards: Guards, payoff: Payoff) -> PercentileTests:
    claims, block, past = dict(tests.claims), tests.open, tests.past

    def bet(guard: PercentileGuard, key: str, trial: lanes.IntervalTrial) -> None:
        name = f"{guard.metric} {key}"
        claims[name] = claims.get(name, Claim()).bet_block(trial, payoff)

    for guard in guards:
        bound = None if guard.max is None else tests.bound_for(guard.max)
        if bound is not None and bound in block.candidate:
            bet(guard, "max", slow_share.trial_alone(block.candidate, bound, guard.share))
        least = slow_share.ignored_share(guard.share)
        bounds = tests.bounds_of(guard) if tests.is_comparable else ()
        for bound in _common(bounds, block):
            times = slow_share.kappa(past, bound, **_terms(guard))
            trial = slow_share.trial_beside(block.stable, block.candidate, bound, times)
            bet(guard, f"ratio {bound!r}", trial)
            floor = slow_share.trial_alone(block.candidate, bound, least)
            bet(guard, f"floor {bound!r}", floor)
    after = replace(tests, claims=claims, open=OpenHistogramBlock())
    return _with_peaks(after, guards, "slow")


def _bet_reading(
    tests: PercentileTests,
    guards: Guards,
    stable: Counts,
    candidate: Counts,
    *,
    is_compared: bool,
) -> PercentileTests:
    claims, reading, past = dict(tests.claims), OpenHistogramBlock(stable, candidate), tests.past

    def bet(guard: PercentileGuard, key: str, trial: lanes.IntervalTrial) -> None:
        name = f"{guard.metric} {key}"
        # One stall makes all requests of a reading slow, so this lane is capped too.
        claims[name] = claims.get(name, Claim()).bet_reading(trial, Payoff.CAPPED)

    for guard in guards:
        bound = None if guard.max is None else tests.bound_for(guard.max)
        if bound is not None and bound in candidate:
            gross = RateLimit(max=guard.share).gross_max
            bet(guard, "max", slow_share.trial_alone(candidate, bound, gross))
        bounds = tests.bounds_of(guard) if is_compared else ()
        for bound in _common(bounds, reading):
            times = slow_share.gross_kappa(past, bound, **_terms(guard))
            bet(guard, f"ratio {bound!r}", slow_share.trial_beside(stable, candidate, bound, times))
            floor = slow_share.trial_alone(candidate, bound, slow_share.GROSS_SHARE)
            bet(guard, f"floor {bound!r}", floor)
    return _with_peaks(replace(tests, claims=claims), guards, "fast")


def _with_peaks(tests: PercentileTests, guards: Guards, lane: str) -> PercentileTests:
    """Update the peaks by the mean over the bounds. Each bound counts with the lower capital of its two claims,
    because both must be refuted.
    """
    peaks = dict(tests.peaks)
    for guard in guards:
        capitals = [
            min(
                getattr(tests.get_claim(guard, f"{claim} {bound!r}"), lane).value
                for claim in ("ratio", "floor")
            )
            for bound in tests.bounds_of(guard)
        ]
        if capitals:
            name = f"{guard.metric} {lane}"
            peaks[name] = max(peaks.get(name, 1.0), sum(capitals) / len(capitals))
    return replace(tests, peaks=peaks)


def _common(bounds: tuple[float, ...], block: OpenHistogramBlock) -> list[float]:
    return [bound for bound in bounds if bound in block.stable and bound in block.candidate]


def _terms(guard: PercentileGuard) -> dict[str, float]:
    ratio = guard.max_ratio or 1.0
    return {"ratio": ratio, "slack_ms": guard.ignore_below, "share": guard.share}


def _counts_to_json(counts: Counts) -> dict[str, int]:
    return {repr(float(bound)): count for bound, count in counts.items()}


def _counts(stored: Mapping[str, int]) -> dict[float, int]:
    return {float(bound): count for bound, count in stored.items()}
