"""The stored state of a metric's baseline, and what one more check makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from deployments.health.domain.baseline import (
    DAYS,
    KINDS,
    BaselineComparison,
    BaselineMetric,
    History,
    HourlyTraffic,
    Streak,
    compare,
    days_known,
    is_long_enough,
)
from deployments.states import HealthVerdict
from portal.core.definitions.figures import format_figure

_SIDES: Final = {1: "above", -1: "below"}


@dataclass(frozen=True, slots=True)
class MetricState:
    """The state of one metric. `comparison` is None while the metric is not known."""

    streak: Streak = field(default_factory=Streak)
    comparison: BaselineComparison | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        last = stored["comparison"]
        return cls(Streak(**stored["streak"]), BaselineComparison(**last) if last else None)

    @property
    def verdict(self) -> HealthVerdict:
        if self.streak.side:
            return HealthVerdict.FAILED
        return HealthVerdict.NOT_KNOWN if self.comparison is None else HealthVerdict.OK


@dataclass(frozen=True, slots=True)
class Change:
    """A metric that left its baseline, or is back."""

    metric: BaselineMetric
    message: str
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check of all metrics. `message` says why nothing was judged; empty when something was."""

    states: Mapping[BaselineMetric, MetricState]
    changes: tuple[Change, ...]
    message: str


def check(
    states: Mapping[BaselineMetric, MetricState],
    now: HourlyTraffic | None,
    history: History,
    *,
    is_continued: bool,
) -> Checked:
    """Compare each metric with its baseline. `is_continued` says whether the last check was made in time, so
    its streaks count.
    """
    kept = {
        metric: states.get(metric, MetricState()) if is_continued else MetricState()
        for metric in BaselineMetric
    }
    if now is None:
        return _nothing(kept, "no pod was read in the last hour")
    if not is_long_enough(history):
        return _nothing(kept, f"needs {DAYS} days of data ({days_known(history)} so far)")
    changes: list[Change] = []
    after: dict[BaselineMetric, MetricState] = {}
    for metric, state in kept.items():
        comparison = compare(metric, now, history)
        if comparison is None:
            after[metric] = replace(state, comparison=None)
            continue
        streak = state.streak.after(comparison.side)
        after[metric] = MetricState(streak, comparison)
        if streak.side != state.streak.side:
            changes.append(_change(metric, streak.side, comparison))
    is_known = any(state.comparison for state in after.values())
    return Checked(after, tuple(changes), "" if is_known else "too few requests in the last hour")


def format_value(metric: BaselineMetric, value: float) -> str:
    if metric == BaselineMetric.LATENCY:
        return f"{value:.3g} ms" if value < 1000 else f"{format_figure(value / 1000, 3)} s"
    if metric == BaselineMetric.REQUESTS:
        return f"{format_figure(value, 3)} req/s"
    return f"{100 * value:.2g}%" if value < 0.1 else f"{100 * value:.0f}%"


def format_range(metric: BaselineMetric, comparison: BaselineComparison) -> str:
    low, high = (format_value(metric, value) for value in (comparison.low, comparison.high))
    return low if low == high else f"{low} to {high}"


def _change(metric: BaselineMetric, side: int, comparison: BaselineComparison) -> Change:
    value = format_value(metric, comparison.value)
    range_ = format_range(metric, comparison)
    label = KINDS[metric].label
    if not side:
        return Change(metric, message=f"{label} {value} is back within its 7-day baseline")
    where = _SIDES[side]
    text = f"{label} {value} is {where} its 7-day baseline: {range_} at this hour"
    return Change(metric, message=text, is_left=True)


def _nothing(kept: Mapping[BaselineMetric, MetricState], message: str) -> Checked:
    states = {metric: replace(state, comparison=None) for metric, state in kept.items()}
    return Checked(states, (), message)
