"""The sequential tests of a rollout on counters: their state, and how one more reading updates it.

Pure: `advance` takes what was stored and the increases since, and returns what to store;
`next_step` carries the capital to another step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from deployments.guards.domain.betting import e_process, rates
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.lanes import Claim, IntervalTrial
from deployments.guards.domain.betting.rates import Pair, RateLimit
from deployments.guards.domain.betting.slots import SLOT_SECONDS
from deployments.guards.domain.counters import NO_FACTS, SideFacts, Sums
from deployments.guards.domain.families.counters import Mean, Rate
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import LoadDifference
from deployments.guards.domain.step_tests import OpenBlock, Side, StepTests

# A gross slowdown, for the fast lane: so many times the plan's limit, and so much longer.
_GROSS: Final = 2.0
_GROSS_MS: Final = 20.0
# A block ends with the reading that completes this part of it: readings are not quite regular.
_COMPLETE: Final = 0.9
# Open blocks by name: of failures, of means, and of the candidate's means alone for absolute limits.
# The fast lane bets on means as soon as there are enough requests ("now"); where the candidate's pods
# have less load than stable's it has a block of its own ("idle now").
_ERRORS, _MEANS, _ALONE = "errors", "means", "alone"
_MEANS_NOW, _IDLE_NOW, _ALONE_NOW = "means now", "idle now", "alone now"


@dataclass(frozen=True, slots=True)
class Procedure:
    """The limits of a plan with their payoff, and the facts of each side."""

    limits: tuple[GuardLimit, ...]
    payoff: Payoff = Payoff.CAPPED
    stable: SideFacts = NO_FACTS
    candidate: SideFacts = NO_FACTS

    def has_facts(self, name: str) -> bool:
        """Whether the named fact is known of both sides. True for an empty name."""
        return not name or None not in (getattr(self.stable, name), getattr(self.candidate, name))


def max_test(metric: str) -> str:
    return f"{metric}.max"


def ratio_test(metric: str) -> str:
    return f"{metric}.ratio"


def next_step(tests: StepTests, procedure: Procedure, lengths: BlockLengths) -> StepTests:
    """Return the state at the beginning of a step.

    The open block ends where the weight changes: it counts as it is, because leaving it out could depend on what it
    shows.
    """
    claims, _ = _bet_blocks(tests, dict(tests.open), procedure, is_cut=True)
    return StepTests(
        lengths=lengths, claims={name: claim.next_step() for name, claim in claims.items()}
    )


def advance(
    tests: StepTests,
    interval: Side,
    *,
    procedure: Procedure,
    seconds: float = SLOT_SECONDS,
    is_within_step: bool = True,
    uncut: Side | None = None,
    load: LoadDifference = LoadDifference.NONE,
    others: int = 0,
) -> StepTests:
    """Update the tests by one interval.

    `is_within_step` False means that the interval began before the step, so its split is not the step's. The tests
    use it all the same; they are valid whatever the traffic weight of each side.

    `uncut` has the times of pods that still warm up, which `interval` lacks; only the fast lane judges these. None
    means that nothing was left out.

    Means of another `load` are not compared, except that of a candidate which is grossly slower although its pods
    have less to do. `others` are requests of stable that are not compared, because a baseline is: they are part of
    the split.
    """
    whole = interval if uncut is None else uncut
    added = {
        _ERRORS: interval,
        _ALONE: Side(candidate=interval.candidate),
        _ALONE_NOW: Side(candidate=whole.candidate),
    }
    if load == LoadDifference.NONE:
        added |= {_MEANS: interval, _MEANS_NOW: whole}
    elif load == LoadDifference.LESS:
        added[_IDLE_NOW] = whole
    waiting = dict(tests.open)
    for name, side in added.items():
        before = waiting.get(name, OpenBlock())
        waiting[name] = OpenBlock(before.side + side, before.seconds + seconds)
    claims, waiting = _bet_blocks(tests, waiting, procedure, is_cut=False)
    claims, waiting = _bet_readings(claims, waiting, procedure, interval)
    split = interval + Side(Sums(success=others))
    return replace(
        tests,
        total=tests.total + interval,
        split=tests.split + split if is_within_step else tests.split,
        open=waiting,
        claims=claims,
        seconds=tests.seconds + seconds,
    )


Claimed = tuple[dict[str, Claim], dict[str, OpenBlock]]


def _bet_blocks(
    tests: StepTests, waiting: dict[str, OpenBlock], procedure: Procedure, *, is_cut: bool
) -> Claimed:
    """Bet the complete blocks in the slow lane."""
    claims, lengths = dict(tests.claims), tests.lengths
    errors = waiting.get(_ERRORS)
    if errors and (is_cut or errors.seconds >= _COMPLETE * lengths.errors):
        del waiting[_ERRORS]
        for limit, pair in _pairs(errors.side, procedure):
            rates.bet_block(claims, limit.metric, rate_limit(limit), pair, procedure.payoff)
    for name, is_alone in ((_MEANS, False), (_ALONE, True)):
        block = waiting.get(name)
        is_long = block and (is_cut or block.seconds >= _COMPLETE * lengths.means)
        if block and is_long and _has_means(block.side, is_alone=is_alone):
            del waiting[name]
            for key, is_worse in _signs(block.side, procedure, is_alone=is_alone, is_gross=False):
                claims[key] = claims.get(key, Claim()).bet_block(
                    _sign(is_worse=is_worse), procedure.payoff
                )
    return claims, waiting


def _bet_readings(
    claims: dict[str, Claim], waiting: dict[str, OpenBlock], procedure: Procedure, interval: Side
) -> Claimed:
    """Bet this reading in the fast lane; means take the last few readings until they have enough requests."""
    for limit, pair in _pairs(interval, procedure):
        rates.bet_reading(claims, limit.metric, rate_limit(limit), pair)
    for name, is_alone in ((_MEANS_NOW, False), (_IDLE_NOW, False), (_ALONE_NOW, True)):
        block = waiting.get(name)
        if block and _has_means(block.side, is_alone=is_alone):
            del waiting[name]
            judged = _without_throughput(procedure) if name == _IDLE_NOW else procedure
            for key, is_worse in _signs(block.side, judged, is_alone=is_alone, is_gross=True):
                claims[key] = claims.get(key, Claim()).bet_reading(_sign(is_worse=is_worse))
    return claims, waiting


def _pairs(side: Side, procedure: Procedure) -> list[tuple[GuardLimit, Pair]]:
    """Return the counts of both sides for each limit on a rate that both servers count."""
    return [
        (limit, side.pair(limit.kind.test.count))
        for limit in procedure.limits
        if isinstance(limit.kind.test, Rate) and procedure.has_facts(limit.kind.fact)
    ]


def _without_throughput(procedure: Procedure) -> Procedure:
    """Keep only limits on times: smaller batches take more time of the GPU for each inference, whatever the version."""
    limits = tuple(limit for limit in procedure.limits if limit.kind.unit == "ms")
    return replace(procedure, limits=limits)


def _has_means(side: Side, *, is_alone: bool) -> bool:
    if side.candidate.timed < e_process.SIGN_REQUESTS_OF_CANDIDATE:
        return False
    return is_alone or side.stable.timed >= e_process.SIGN_REQUESTS


def _signs(
    side: Side, procedure: Procedure, *, is_alone: bool, is_gross: bool
) -> list[tuple[str, bool]]:
    """Return by the name of its test whether each mean is above its limit."""
    signs = []
    for limit in procedure.limits:
        if not isinstance(limit.kind.test, Mean):
            continue
        mine = limit.kind.value(side.candidate, procedure.candidate)
        base = limit.kind.value(side.stable, procedure.stable)
        most = limit.max if is_alone else None if base is None else most_of(limit, base)
        if mine is not None and most is not None:
            name = max_test(limit.metric) if is_alone else ratio_test(limit.metric)
            signs.append((name, mine > (_gross(limit, most, base) if is_gross else most)))
    return signs


def _gross(limit: GuardLimit, most: float, base: float | None) -> float:
    slack = _GROSS_MS if limit.kind.unit == "ms" else 0.0
    return max(_GROSS * most, (base or most) + slack)


def _sign(*, is_worse: bool) -> IntervalTrial:
    return IntervalTrial(int(is_worse), 1, e_process.SIGN_CHANCE)


def rate_limit(limit: GuardLimit) -> RateLimit:
    return RateLimit(limit.max, limit.max_ratio, limit.ignore_below)


def most_of(limit: GuardLimit, stable: float) -> float | None:
    """Return the highest value that the relative limit allows for this value of stable.

    A rate may always be as high as its floor; a mean may always lie `ignore_below` above stable's.
    """
    if limit.max_ratio is None:
        return None
    if limit.kind.is_rate:
        return rate_limit(limit).compute_highest(stable)
    return max(limit.max_ratio * stable, stable + (limit.ignore_below or 0.0))


def evidence_of(limit: GuardLimit, tests: StepTests) -> float:
    """Return the evidence against the limit over the rollout, to compare with 1 / the level of one test."""
    if limit.kind.is_rate:
        return rates.evidence(tests.claims, limit.metric, rate_limit(limit))
    return max(tests.get_claim(name).evidence for name in _names(limit)) if limit.tests else 0.0


def is_within(limit: GuardLimit, tests: StepTests, *, alpha: float) -> bool:
    """Whether this step has shown that all limits are met."""
    if limit.kind.is_rate:
        return rates.is_within(tests.claims, limit.metric, rate_limit(limit), alpha=alpha)
    return all(tests.get_claim(name).within.value >= 1 / alpha for name in _names(limit))


def _names(limit: GuardLimit) -> list[str]:
    absolute = [] if limit.max is None else [max_test(limit.metric)]
    return absolute if limit.max_ratio is None else [*absolute, ratio_test(limit.metric)]


def block_seconds(limit: GuardLimit, tests: StepTests) -> float:
    return tests.lengths.errors if limit.kind.is_rate else tests.lengths.means
