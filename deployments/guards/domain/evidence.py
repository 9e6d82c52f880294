"""Evidence at a step of a rollout: stable beside candidate, and a verdict in words per guard.

Three verdicts: pass, fail, not enough data. Missing numbers are never a pass and never a fail.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from deployments.guards.domain import e_process

# How often a right split may ever be called wrong. It is looked at every few seconds, so the band
# is one that holds at all looks together.
_SHARE_ALPHA: Final = 0.001
# Counters of two pods are read moments apart; the share may be off by this much for that alone.
_READING_SKEW: Final = 0.01
SHARE: Final = "Share of requests"
# The same of a shadow: how many copies the candidate got of the requests that stable answered.
MIRROR: Final = "Mirrored requests"
SPLITS: Final = (SHARE, MIRROR)
# Copies that the candidate is still busy with while stable has answered already.
_BUSY: Final = 20


class Verdict(StrEnum):
    PASSED = "pass"
    FAILED = "fail"
    NOT_ENOUGH = "not enough data"


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
    # What was asked of Prometheus, and when it answered; empty for what comes from counters.
    query: str = ""
    measured_at: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Band:
    """Within which the candidate's observed share of `n` requests lies if the split is right."""

    low: float
    high: float


def band(*, weight: int, n: int) -> Band:
    low, high = e_process.share_band(share=weight / 100, n=n, alpha=_SHARE_ALPHA)
    return Band(low=max(0.0, low - _READING_SKEW), high=min(1.0, high + _READING_SKEW))


def mirror_band(*, percent: int, n: int) -> Band:
    """Of the copies among `n` requests that stable answered. The counters are those of two pods, so
    where everything is copied it may even seem to be more than that.
    """
    share = percent / 100
    low, high = e_process.share_band(share=share, n=n, alpha=_SHARE_ALPHA)
    slack = _READING_SKEW + share * _BUSY / max(1, n)
    return Band(low=max(0.0, low - slack), high=high + slack)


def stopping(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """Those for which the candidate is sent away. A wrong split raises an alarm and blocks promotion,
    but it is the gateway's fault.
    """
    return tuple(
        guard for guard in guards if guard.verdict == Verdict.FAILED and guard.guard not in SPLITS
    )


def named(guards: Sequence[Guard], verdict: Verdict) -> tuple[str, ...]:
    return tuple(guard.guard.lower() for guard in guards if guard.verdict == verdict)


def changed_words(before: Sequence[Guard], after: Sequence[Guard]) -> str:
    """For example "error ratio: pass → fail (12 of 400 requests failed)"; empty when none turned."""
    old = {guard.guard: guard.verdict for guard in before}
    new = {guard.guard for guard in after}
    turned = [
        f"{guard.guard.lower()}: {old.get(guard.guard, 'not shown')} → {guard.verdict} ({guard.words})"
        for guard in after
        if old.get(guard.guard) != guard.verdict
    ]
    gone = [f"{name.lower()}: no longer judged" for name in old if name not in new]
    return "; ".join([*turned, *gone])


def digest(*, rollout_id: int, step_index: int, phase: str, guards: Sequence[Guard]) -> str:
    """What a decision binds to: where the rollout is and every verdict, not the running numbers."""
    seen = {
        "rollout": rollout_id,
        "step": step_index,
        "phase": phase,
        "verdicts": [[guard.guard, guard.verdict] for guard in guards],
    }
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def judge_share(*, weight: int, stable: int | None, candidate: int | None) -> Guard:
    """Of the requests of both sides since the step began; None means that they are not known."""
    total = None if stable is None or candidate is None else stable + candidate
    if candidate is None or not total:
        return Guard(
            guard=SHARE,
            stable="",
            candidate="",
            limit=f"{weight} %",
            n=total,
            verdict=Verdict.NOT_ENOUGH,
            words="no requests were counted at this step yet",
            source=_SHARE_SOURCE,
        )
    expected = band(weight=weight, n=total)
    share = candidate / total
    is_right = expected.low <= share <= expected.high
    words = f"the candidate got {candidate:,} of {total:,} requests; {weight} % were asked for"
    return Guard(
        guard=SHARE,
        stable=f"{1 - share:.1%}",
        candidate=f"{share:.1%}",
        limit=f"{expected.low:.1%} to {expected.high:.1%}",
        n=total,
        verdict=Verdict.PASSED if is_right else Verdict.FAILED,
        words=words if is_right else f"{words}, so the split is not what was asked for",
        source=_SHARE_SOURCE,
        statistic=f"a right split leaves this band with a chance of {_SHARE_ALPHA:.1%} at most",
    )


def judge_mirror(*, percent: int, stable: int | None, candidate: int | None) -> Guard:
    """As judge_share, of a shadow: all requests go to stable, and copies of some to the candidate."""
    if candidate is None or not stable:
        return Guard(
            guard=MIRROR,
            stable="",
            candidate="",
            limit=f"{percent} %",
            n=stable,
            verdict=Verdict.NOT_ENOUGH,
            words="no requests were counted at this step yet",
            source=_SHARE_SOURCE,
        )
    expected = mirror_band(percent=percent, n=stable)
    share = candidate / stable
    is_right = expected.low <= share <= expected.high
    words = (
        f"{candidate:,} mirrored requests came to the candidate, of {stable:,} that stable "
        f"answered; {percent} % were asked for"
    )
    return Guard(
        guard=MIRROR,
        stable="answers all",
        candidate=f"{share:.1%}",
        limit=f"{expected.low:.1%} to {expected.high:.1%}",
        n=stable,
        verdict=Verdict.PASSED if is_right else Verdict.FAILED,
        words=words if is_right else f"{words}, so the mirror is not what was asked for",
        source=_SHARE_SOURCE,
        statistic=f"a right mirror leaves this band with a chance of {_SHARE_ALPHA:.1%} at most",
    )


_SHARE_SOURCE: Final = "Triton request counters of both revisions"
