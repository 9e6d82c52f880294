"""Evidence at a step of a rollout: one result per guard, with stable, candidate and a verdict.

Missing numbers are never a pass and never a fail: they are "not enough data" while they may still come,
and "not known" where nothing here can measure them. "Not comparable" are figures that are known, but
not of the same load. Neither of the two aborts; with either only a person can promote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from deployments.guards.domain.betting import e_process

# The probability that a right split is ever reported as wrong. It is checked every few seconds, so
# the band is valid for all checks together.
_SPLIT_ALPHA: Final = 0.001
# Counters of two pods are read moments apart, which alone shifts the split by this much.
_READING_SKEW: Final = 0.01
SPLIT: Final = "Traffic split"
# Of a shadow: how many of the requests that stable answered were mirrored to the candidate.
MIRROR: Final = "Mirrored requests"
SPLITS: Final = (SPLIT, MIRROR)
# What the candidate's server counted of what the gateway sent to it.
RECEIVED: Final = "Requests received"
# Mirrored requests that the candidate is still busy with when stable has answered.
_BUSY: Final = 20


class Verdict(StrEnum):
    PASSED = "pass"
    FAILED = "fail"
    NOT_ENOUGH = "not enough data"
    NOT_KNOWN = "not known"
    NOT_COMPARABLE = "not comparable"


# No later reading of the step changes these by itself.
_UNJUDGED: Final = (Verdict.NOT_KNOWN, Verdict.NOT_COMPARABLE)


@dataclass(frozen=True, slots=True)
class GuardResult:
    """The result of one guard at one time. Numbers are text with their unit, as they are shown."""

    guard: str
    stable: str
    candidate: str
    limit: str
    n: int | None
    verdict: str
    message: str
    # What measured it: "Triton counters, mean".
    source: str = ""
    # What the test says: "worse: always-valid p 0.0003", "e-value 12 of 800".
    statistic: str = ""
    # The query to Prometheus, and when it answered; empty for counters.
    query: str = ""
    measured_at: str = ""
    # Judged and shown, but it decides nothing.
    is_dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Band:
    """The band of the candidate's share of requests, 0 to 1, if the split is right."""

    low: float
    high: float


def band(*, weight: int, n: int) -> Band:
    low, high = e_process.share_band(share=weight / 100, n=n, alpha=_SPLIT_ALPHA)
    return Band(low=max(0.0, low - _READING_SKEW), high=min(1.0, high + _READING_SKEW))


def mirror_band(*, percent: int, n: int) -> Band:
    """Return the band for `n` requests that stable answered.

    The counters are those of two pods, so when everything is mirrored the band goes beyond 1.
    """
    share = percent / 100
    low, high = e_process.share_band(share=share, n=n, alpha=_SPLIT_ALPHA)
    slack = _READING_SKEW + share * _BUSY / max(1, n)
    return Band(low=max(0.0, low - slack), high=high + slack)


def stopping(guards: Sequence[GuardResult]) -> tuple[GuardResult, ...]:
    """Return the results that abort the rollout.

    A wrong split raises an alarm and blocks promotion, but it is the gateway's fault.
    """
    return tuple(
        guard
        for guard in deciding(guards)
        if guard.verdict == Verdict.FAILED and guard.guard not in SPLITS
    )


def deciding(guards: Sequence[GuardResult]) -> tuple[GuardResult, ...]:
    """Return the results that may abort the rollout or block promotion."""
    return tuple(guard for guard in guards if not guard.is_dry_run)


def read(stored: Sequence[Mapping[str, Any]]) -> tuple[GuardResult, ...]:
    """Read results from their stored form."""
    return tuple(GuardResult(**row) for row in stored)


def list_names(guards: Sequence[GuardResult], verdict: Verdict) -> tuple[str, ...]:
    """Return the names of the deciding guards with this verdict."""
    return tuple(guard.guard.lower() for guard in deciding(guards) if guard.verdict == verdict)


def describe_unjudged(guards: Sequence[GuardResult]) -> tuple[str, ...]:
    """Describe the deciding guards that do not judge this step ("lost requests not known"). Empty if all do."""
    return tuple(
        f"{guard.guard.lower()} {guard.verdict}"
        for guard in deciding(guards)
        if guard.verdict in _UNJUDGED
    )


def describe_changes(before: Sequence[GuardResult], after: Sequence[GuardResult]) -> str:
    """Describe changed verdicts: "error ratio: pass → fail (12 of 400 requests failed)". Empty if none changed."""
    old = {guard.guard: guard.verdict for guard in before}
    new = {guard.guard for guard in after}
    changed = [
        f"{guard.guard.lower()}: {old.get(guard.guard, 'not shown')} → {guard.verdict} ({guard.message})"
        for guard in after
        if old.get(guard.guard) != guard.verdict
    ]
    gone = [f"{name.lower()}: no longer judged" for name in old if name not in new]
    return "; ".join([*changed, *gone])


def digest(*, rollout_id: int, step_index: int, phase: str, guards: Sequence[GuardResult]) -> str:
    """Return the digest that a decision binds to: the step and every verdict that decides, not the running numbers."""
    bound = {
        "rollout": rollout_id,
        "step": step_index,
        "phase": phase,
        "verdicts": [[guard.guard, guard.verdict] for guard in deciding(guards)],
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def judge_split(*, weight: int, stable: int | None, candidate: int | None) -> GuardResult:
    """Judge the requests of both revisions since the step began. None means that they are not known."""
    total = None if stable is None or candidate is None else stable + candidate
    if candidate is None or not total:
        return _no_requests(SPLIT, weight, total)
    expected = band(weight=weight, n=total)
    part = candidate / total
    is_right = expected.low <= part <= expected.high
    message = f"the candidate got {candidate:,} of {total:,} requests; {weight}% requested"
    return GuardResult(
        guard=SPLIT,
        stable=f"{1 - part:.1%}",
        candidate=f"{part:.1%}",
        limit=f"{expected.low:.1%} to {expected.high:.1%}",
        n=total,
        verdict=Verdict.PASSED if is_right else Verdict.FAILED,
        message=message if is_right else f"{message}, so the split is not as requested",
        source=_SPLIT_SOURCE,
        statistic=f"a right split leaves this range with a probability of at most {_SPLIT_ALPHA:.1%}",
    )


def judge_received(
    *, weight: int, sent_weight: int, counted: tuple[int, int], sent: tuple[int, int]
) -> GuardResult | None:
    """Judge whether the candidate loses requests: its server counts less than the share that the gateway sent it.

    Both pairs are of stable and candidate, each with the candidate's percentage. None if nothing is missing, or if
    the split itself is wrong, which is the gateway's fault.
    """
    if not sum(counted) or not sum(sent):
        return None
    at_gateway = band(weight=sent_weight, n=sum(sent))
    at_servers = band(weight=weight, n=sum(counted))
    sent_share, counted_share = (
        candidate / (stable + candidate) for stable, candidate in (sent, counted)
    )
    is_sent_right = at_gateway.low <= sent_share <= at_gateway.high
    if not is_sent_right or counted_share >= at_servers.low:
        return None
    return GuardResult(
        guard=RECEIVED,
        stable=f"{counted[0]:,} of {sent[0]:,}",
        candidate=f"{counted[1]:,} of {sent[1]:,}",
        limit=f"{at_servers.low:.1%} to {at_servers.high:.1%}",
        n=sum(counted),
        verdict=Verdict.FAILED,
        message=f"the gateway sent {sent_share:.1%} of the requests to the candidate, but only "
        f"{counted_share:.1%} were counted there: its requests are lost on the way",
        source="gateway counters compared with those of the servers",
        statistic=f"a right split leaves this range with a probability of at most {_SPLIT_ALPHA:.1%}",
    )


def judge_mirror(*, percent: int, stable: int | None, candidate: int | None) -> GuardResult:
    """Judge the split of a shadow: stable answers all requests, and some are mirrored to the candidate."""
    if candidate is None or not stable:
        return _no_requests(MIRROR, percent, stable)
    expected = mirror_band(percent=percent, n=stable)
    part = candidate / stable
    is_right = expected.low <= part <= expected.high
    message = (
        f"{candidate:,} of {stable:,} requests that stable answered were mirrored to the "
        f"candidate; {percent}% requested"
    )
    return GuardResult(
        guard=MIRROR,
        stable="answers all",
        candidate=f"{part:.1%}",
        limit=f"{expected.low:.1%} to {expected.high:.1%}",
        n=stable,
        verdict=Verdict.PASSED if is_right else Verdict.FAILED,
        message=message if is_right else f"{message}, so mirroring is not as requested",
        source=_SPLIT_SOURCE,
        statistic=f"right mirroring leaves this range with a probability of at most {_SPLIT_ALPHA:.1%}",
    )


def _no_requests(guard: str, percent: int, n: int | None) -> GuardResult:
    return GuardResult(
        guard=guard,
        stable="",
        candidate="",
        limit=f"{percent}%",
        n=n,
        verdict=Verdict.NOT_ENOUGH,
        message="no requests were counted at this step yet",
        source=_SPLIT_SOURCE,
    )


_SPLIT_SOURCE: Final = "Triton request counters of both revisions"
