"""Evidence at a step of a rollout: stable beside candidate, and a verdict in words per guard.

Three verdicts: pass, fail, not enough data. Missing numbers are never a pass and never a fail.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

# Two-sided 99.9 %: the share is looked at every few seconds, so a narrow band would cry wolf.
_Z: Final = 3.29
# Counters of two pods are read moments apart; the share may be off by this much for that alone.
_READING_SKEW: Final = 0.01
MOST_ERROR_RATIO: Final = 0.01
MOST_LATENCY_FACTOR: Final = 1.5
# Below this the factor compares noise.
LATENCY_SLACK_MS: Final = 5.0


class Verdict(StrEnum):
    PASSED = "pass"
    FAILED = "fail"
    NOT_ENOUGH = "not enough data"


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of one revision since the step began. None means that it is not known."""

    success: int | None = None
    failure: int | None = None
    mean_latency_ms: float | None = None

    @property
    def requests(self) -> int | None:
        if self.success is None or self.failure is None:
            return None
        return self.success + self.failure

    @property
    def error_ratio(self) -> float | None:
        total = self.requests
        return None if not total or self.failure is None else self.failure / total


@dataclass(frozen=True, slots=True)
class Guard:
    """One line of the evidence. Numbers are shown, so they are text with their unit."""

    guard: str
    stable: str
    candidate: str
    limit: str
    n: int | None
    verdict: str
    words: str
    # What measured it: "Triton counters, mean".
    source: str = ""
    # What the test says: "worse: always-valid p 0.0003", "e-value 12 of 800".
    statistic: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Band:
    """Within which the candidate's observed share of `n` requests lies if the split is right."""

    low: float
    high: float


def band(*, weight: int, n: int) -> Band:
    share = weight / 100
    spread = _Z * math.sqrt(share * (1 - share) / n) + _READING_SKEW if n else 1.0
    return Band(low=max(0.0, share - spread), high=min(1.0, share + spread))


def judge(
    *, weight: int, min_requests: int, stable: Counts, candidate: Counts
) -> tuple[Guard, ...]:
    return (
        _judge_share(weight, min_requests, stable, candidate),
        _judge_errors(min_requests, stable, candidate),
        _judge_latency(min_requests, stable, candidate),
    )


def digest(*, rollout_id: int, step_index: int, phase: str, guards: Sequence[Guard]) -> str:
    """What a decision binds to: where the rollout is and every verdict, not the running numbers."""
    seen = {
        "rollout": rollout_id,
        "step": step_index,
        "phase": phase,
        "verdicts": [[guard.guard, guard.verdict] for guard in guards],
    }
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def _judge_share(weight: int, min_requests: int, stable: Counts, candidate: Counts) -> Guard:
    mine, others = candidate.requests, stable.requests
    total = None if mine is None or others is None else mine + others
    if mine is None or not total:
        return _undecided(
            "Share of requests", f"{weight} %", total, "no requests were counted at this step yet"
        )
    expected = band(weight=weight, n=total)
    share = mine / total
    is_right = expected.low <= share <= expected.high
    limit = f"{expected.low:.1%} to {expected.high:.1%}"
    is_small = total < min_requests
    verdict = Verdict.PASSED if is_right else Verdict.NOT_ENOUGH if is_small else Verdict.FAILED
    words = f"the candidate got {mine:,} of {total:,} requests; {weight} % were asked for" + (
        "" if is_right else ", so the split is not what was asked for"
    )
    return Guard(
        guard="Share of requests",
        stable=f"{1 - share:.1%}",
        candidate=f"{share:.1%}",
        limit=limit,
        n=total,
        verdict=verdict,
        words=words,
    )


def _judge_errors(min_requests: int, stable: Counts, candidate: Counts) -> Guard:
    ratio, n = candidate.error_ratio, candidate.requests
    limit = (
        MOST_ERROR_RATIO if stable.error_ratio is None else MOST_ERROR_RATIO + stable.error_ratio
    )
    if ratio is None or n is None or n < min_requests:
        return _undecided("Error ratio", f"≤ {limit:.2%}", n, _too_few(n, min_requests))
    is_good = ratio <= limit
    return Guard(
        guard="Error ratio",
        stable=_percent(stable.error_ratio),
        candidate=_percent(ratio),
        limit=f"≤ {limit:.2%}",
        n=n,
        verdict=Verdict.PASSED if is_good else Verdict.FAILED,
        words=f"{candidate.failure:,} of {n:,} requests failed",
    )


def _judge_latency(min_requests: int, stable: Counts, candidate: Counts) -> Guard:
    mine, base, n = candidate.mean_latency_ms, stable.mean_latency_ms, candidate.requests
    if mine is None or n is None or n < min_requests:
        return _undecided("Mean latency", "", n, _too_few(n, min_requests))
    if base is None:
        return _undecided(
            "Mean latency", "", n, "the stable revision has no latency to compare with"
        )
    limit = max(base * MOST_LATENCY_FACTOR, base + LATENCY_SLACK_MS)
    return Guard(
        guard="Mean latency",
        stable=f"{base:.1f} ms",
        candidate=f"{mine:.1f} ms",
        limit=f"≤ {limit:.1f} ms",
        n=n,
        verdict=Verdict.PASSED if mine <= limit else Verdict.FAILED,
        words=f"{(mine - base) / base:+.0%} against stable" if base else "stable answers at once",
    )


def _undecided(guard: str, limit: str, n: int | None, why: str) -> Guard:
    return Guard(
        guard=guard,
        stable="",
        candidate="",
        limit=limit,
        n=n,
        verdict=Verdict.NOT_ENOUGH,
        words=why,
    )


def _too_few(n: int | None, needed: int) -> str:
    if n is None:
        return "the candidate's requests are not known"
    return f"{n:,} of {needed:,} requests so far"


def _percent(ratio: float | None) -> str:
    return "not known" if ratio is None else f"{ratio:.2%}"
