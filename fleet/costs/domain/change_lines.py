"""Why costs changed, in words: one sentence with the largest causes, and a line for each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from fleet.costs.domain.cost_changes import ChangeKind, ChangePart, CostChange
from fleet.costs.domain.ledger_addresses import build_address
from fleet.costs.domain.results import ZERO, GroupKey

# Causes in the sentence, and lines of the table; all others are one.
_MOST_CAUSES: Final = 3
_MOST_LINES: Final = 8
# For a part above and below $0.
_CAUSES: Final = {
    ChangeKind.HOURS: ("more hours", "fewer hours"),
    ChangeKind.PRICE: ("dearer nodes", "cheaper nodes"),
    ChangeKind.NEW: ("new", "new"),
    ChangeKind.GONE: ("gone", "gone"),
    ChangeKind.IDLE: ("more idle", "less idle"),
    ChangeKind.CORRECTED: ("corrections", "corrections"),
}
# "new: ranker", where others are "more hours of ranker".
_LISTED: Final = (ChangeKind.NEW, ChangeKind.GONE)


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause in the sentence: "$300 more hours of ranker". Below $0, what it saved stands with a minus."""

    amount: Decimal
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A line of the table. `part` is None for the rest beyond the lines; `url` is then that of all rows."""

    name: str
    cause: str
    amount: Decimal
    url: str
    part: ChangePart | None = None


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A change for people. The amounts of the causes and the rest, and those of the lines, sum to the difference."""

    change: CostChange
    causes: Sequence[Cause]
    rest_amount: Decimal
    lines: Sequence[ChangeLine]
    # The rows of both periods.
    url: str

    @property
    def before_last_day(self) -> date:
        return (self.change.start - timedelta(microseconds=1)).date()

    @property
    def fall_amount(self) -> Decimal:
        return -self.change.difference_amount


def describe(change: CostChange, *, team_slug: str = "", is_of_one: bool = False) -> ChangeText:
    """Describe a change. `team_slug` limits the linked rows to those of the team that the page shows. `is_of_one`
    leaves out the name of the only deployment.
    """
    causes = _list_causes(change, team_slug, is_of_one=is_of_one)
    shown = causes[:_MOST_CAUSES]
    only = change.parts[0].key if is_of_one and change.parts else None
    return ChangeText(
        change=change,
        causes=shown,
        rest_amount=sum((cause.amount for cause in causes[_MOST_CAUSES:]), ZERO),
        lines=_list_lines(change, team_slug),
        url=_address(change, team_slug, only),
    )


def _list_causes(change: CostChange, team_slug: str, *, is_of_one: bool) -> list[Cause]:
    """Join the parts of one kind and sign, except for the hours of each deployment. The largest come first."""
    joined: dict[tuple[ChangeKind, bool, GroupKey | None], list[ChangePart]] = {}
    for part in change.parts:
        own = part.key if part.kind is ChangeKind.HOURS else None
        joined.setdefault((part.kind, part.amount > 0, own), []).append(part)
    causes = [_cause(parts, change, team_slug, is_of_one=is_of_one) for parts in joined.values()]
    return sorted(causes, key=lambda cause: -abs(cause.amount))


def _cause(
    parts: Sequence[ChangePart], change: CostChange, team_slug: str, *, is_of_one: bool
) -> Cause:
    first = parts[0]
    text = _name_cause(first)
    key = first.key if len(parts) == 1 else None
    if key is not None and not (is_of_one or key.is_idle):
        text = f"{text}: {_name(key)}" if first.kind in _LISTED else f"{text} of {_name(key)}"
    amount = sum((part.amount for part in parts), ZERO)
    return Cause(amount, text, _address(change, team_slug, key))


def _list_lines(change: CostChange, team_slug: str) -> list[ChangeLine]:
    most = _MOST_LINES if len(change.parts) <= _MOST_LINES else _MOST_LINES - 1
    lines = [
        ChangeLine(
            _name(part.key),
            _name_cause(part),
            part.amount,
            _address(change, team_slug, part.key),
            part,
        )
        for part in change.parts[:most]
    ]
    rest = change.parts[most:]
    if rest:
        amount = sum((part.amount for part in rest), ZERO)
        name = f"{len(rest)} smaller parts"
        lines.append(ChangeLine(name, "", amount, _address(change, team_slug)))
    return lines


def _name_cause(part: ChangePart) -> str:
    return _CAUSES[part.kind][part.amount < 0]


def _name(key: GroupKey) -> str:
    return "other deployments" if key.is_others else key.label


def _address(change: CostChange, team_slug: str, key: GroupKey | None = None) -> str:
    """Return the address of the rows of both periods, which follow each other."""
    return build_address(change.before_start, change.end, team_slug=team_slug, key=key)
