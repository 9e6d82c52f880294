"""The decisions of a pass over the office hours of one pool: pure, from the row, the live size and the time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.hours import OfficeHours
from fleet.office_hours.domain.sizes import Size

# AWS and the cluster reflect a change well within this.
_SHOWN_WITHIN: Final = timedelta(minutes=10)


class Event(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    CHANGED = "changed by hand"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Move:
    """A change from one size to the other, at an edge. It is stored before its effect, so that the next worker
    knows which of the two sizes to expect if one dies in between.
    """

    opens: bool
    before: Size
    after: Size
    started_at: datetime

    @property
    def token(self) -> str:
        return f"{'open' if self.opens else 'close'}-{int(self.started_at.timestamp())}"

    def to_json(self) -> dict[str, Any]:
        return {
            "opens": self.opens,
            "before": dict(self.before),
            "after": dict(self.after),
            "started_at": self.started_at.isoformat(),
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Move:
        return cls(**{**raw, "started_at": datetime.fromisoformat(raw["started_at"])})


@dataclass(frozen=True, slots=True)
class PoolState:
    """The state in which the portal last left a pool. `open_size` is the size when it closed, which it gets back.
    `closed_size` is that of its last closing; `last_size` is that of the last pass.
    """

    is_open: bool = True
    open_size: Size | None = None
    closed_size: int | None = None
    last_size: Size | None = None
    move: Move | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a pool. `effect` is to be made now; `state` to be stored before it."""

    state: PoolState
    effect: Move | None = None
    event: Event | None = None
    is_waiting: bool = False


def decide(
    hours: OfficeHours, state: PoolState, live: Size, at: datetime, *, is_ending: bool = False
) -> Decision:
    """Decide what to do with a pool. A manual change is kept until the next time that office hours begin or end."""
    should_open = is_ending or hours.is_open(at)
    if state.move is not None:
        return _continue_move(state, state.move, live, at, should_open=should_open)
    if should_open != state.is_open:
        return _start(hours, state, live, at, opens=should_open)
    if not should_open and state.closed_size != hours.closed_size:
        return _close_again(hours, state, live, at)
    if is_ending:
        return Decision(state, event=Event.ENDED)
    if state.last_size not in (None, live):
        return Decision(replace(state, last_size=live), event=Event.CHANGED)
    return Decision(replace(state, last_size=live))


def _start(
    hours: OfficeHours, state: PoolState, live: Size, at: datetime, *, opens: bool
) -> Decision:
    if opens:
        after = state.open_size if state.open_size is not None else live
        stored = state
    else:
        after = sizes.compute_closed_size(live, hours.closed_size)
        stored = replace(state, open_size=live, closed_size=hours.closed_size)
    move = Move(opens, live, after, at)
    return Decision(replace(stored, last_size=live, move=move), is_waiting=True)


def _continue_move(
    state: PoolState, move: Move, live: Size, at: datetime, *, should_open: bool
) -> Decision:
    """Continue a move by the live size: arrived, changed by someone, or as before the move. Then the move is made
    again if the hours still want it, waited for while it may still show, and given up after that.
    """
    arrived = replace(state, is_open=move.opens, last_size=live, move=None)
    if live == move.after:
        return Decision(arrived, event=Event.OPENED if move.opens else Event.CLOSED)
    if live != move.before:
        return Decision(arrived, event=Event.CHANGED)
    if move.opens == should_open:
        return Decision(state, effect=move, is_waiting=True)
    if at - move.started_at < _SHOWN_WITHIN:
        return Decision(state, is_waiting=True)
    # Office hours began or ended before it was made.
    return Decision(replace(state, is_open=not move.opens, move=None))


def _close_again(hours: OfficeHours, state: PoolState, live: Size, at: datetime) -> Decision:
    """The size outside office hours was changed while they are closed."""
    own = state.open_size if state.open_size is not None else live
    stored = replace(state, closed_size=hours.closed_size, last_size=live)
    before = sizes.compute_closed_size(own, state.closed_size or 0)
    if live != before:
        return Decision(stored)
    after = sizes.compute_closed_size(own, hours.closed_size)
    move = Move(opens=False, before=live, after=after, started_at=at)
    return Decision(replace(stored, move=move), is_waiting=True)
