"""Two tests (lanes) of one hypothesis: slow and careful about small regressions, fast about large ones.

- The slow lane bets once a block (`blocks`) against the plan's limit, with a payoff of at most 2, so
  that a burst of the candidate's own cannot win it.
- The fast lane bets at every reading against a much higher limit, at FULL payoff: a candidate that is this
  bad must not wait for a dozen blocks, whatever causes it.

Each lane may spend half of the claim's level. Their capital is carried over the steps of a rollout,
so the level is that of the whole rollout. `within` is the opposite claim, judged at each step anew:
what was shown at 5% of the traffic says little of 50%.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deployments.guards.domain.betting import e_process
from deployments.guards.domain.betting.e_process import Payoff, Wealth


@dataclass(frozen=True, slots=True)
class IntervalTrial:
    """The result of an interval: `hits` of `trials` fell on the suspicious side. Under the null hypothesis each is
    a hit with probability `chance`.
    """

    hits: int
    trials: int
    chance: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The capital of both lanes. `hits` of the slow lane's `trials` at this step were worse than allowed."""

    slow: Wealth = field(default_factory=e_process.suspicion)
    fast: Wealth = field(default_factory=e_process.suspicion)
    within: Wealth = field(default_factory=e_process.confidence)
    hits: int = 0
    trials: int = 0

    def bet_block(self, trial: IntervalTrial, payoff: Payoff) -> Claim:
        hits, trials, chance = trial.hits, trial.trials, trial.chance
        return replace(
            self,
            slow=self.slow.bet(hits=hits, trials=trials, chance=chance, payoff=payoff),
            within=self.within.bet(hits=hits, trials=trials, chance=chance, payoff=payoff),
            hits=self.hits + trial.hits,
            trials=self.trials + trial.trials,
        )

    def bet_reading(self, trial: IntervalTrial, payoff: Payoff = Payoff.FULL) -> Claim:
        hits, trials, chance = trial.hits, trial.trials, trial.chance
        fast = self.fast.bet(hits=hits, trials=trials, chance=chance, payoff=payoff)
        return replace(self, fast=fast)

    def next_step(self) -> Claim:
        return Claim(slow=self.slow, fast=self.fast)

    @property
    def evidence(self) -> float:
        """The evidence of both lanes together: an e-value at the claim's whole level."""
        return max(self.slow.peak, self.fast.peak) / 2

    def to_json(self) -> dict[str, Any]:
        return {
            "slow": self.slow.to_json(),
            "fast": self.fast.to_json(),
            "within": self.within.to_json(),
            "hits": self.hits,
            "trials": self.trials,
        }


Claims = Mapping[str, Claim]


def from_json(stored: Mapping[str, Any]) -> Claim:
    return Claim(
        slow=e_process.suspicion(stored["slow"]),
        fast=e_process.suspicion(stored["fast"]),
        within=e_process.confidence(stored["within"]),
        hits=stored["hits"],
        trials=stored["trials"],
    )


def p_of(evidence: float) -> float:
    """Return the always-valid p-value of an e-value's highest value."""
    return min(1.0, 1 / evidence)
