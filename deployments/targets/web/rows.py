"""The text of a target on its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deployments.targets.domain.burn import RuleResult, TargetState
from deployments.targets.domain.metrics import MetricKind
from deployments.targets.selectors.targets import TargetSummary
from portal.ui import formats

_TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class BurnRuleRow:
    text: str
    long_text: str
    short_text: str
    long_rate: str
    short_rate: str
    fires: bool | None


@dataclass(frozen=True, slots=True)
class TargetRow:
    """The row of a target on its page. `budget_percent` is 0..100 for the bar; None if no requests are known."""

    view: TargetSummary
    budget_percent: float | None
    budget_text: str
    rules: Sequence[BurnRuleRow]

    @property
    def kind(self) -> MetricKind:
        return self.view.kind

    @property
    def state(self) -> TargetState:
        return self.view.evaluation.state

    @property
    def is_incomplete(self) -> bool:
        return self.known_text != "100%"

    @property
    def known_text(self) -> str:
        """The known part of the window in percent, rounded down: 100% is all of it."""
        return f"{int(1000 * self.view.evaluation.known_share) / 10:g}%"

    @property
    def counts_text(self) -> str:
        sums = self.view.evaluation.sums
        allowed = round(self.view.evaluation.allowed_bad)
        return f"{sums.bad:,} of {sums.total:,}; {allowed:,} allowed"


def row_of(view: TargetSummary) -> TargetRow:
    left = view.evaluation.budget_left
    return TargetRow(
        view=view,
        budget_percent=None if left is None else 100 * max(0.0, left),
        budget_text=formats.NOT_KNOWN if left is None else _budget(left),
        rules=[_rule(result) for result in view.evaluation.rules],
    )


def _budget(left: float) -> str:
    if left < 0:
        return f"exceeded {1 - left:,.1f}{_TIMES}"
    return f"{100 * left:.1f}%"


def _rule(result: RuleResult) -> BurnRuleRow:
    rule = result.rule
    return BurnRuleRow(
        text=f"{rule.factor:g}{_TIMES} as fast as allowed",
        long_text=formats.span(60 * rule.long_minutes),
        short_text=formats.span(60 * rule.short_minutes),
        long_rate=_rate(result.long_rate),
        short_rate=_rate(result.short_rate),
        fires=result.fires,
    )


def _rate(rate: float | None) -> str:
    return formats.NOT_KNOWN if rate is None else f"{rate:,.1f}{_TIMES}"
