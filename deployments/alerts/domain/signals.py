"""The verdict of a kind of alert on one subject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AlertState(StrEnum):
    OPEN = "open"
    SILENCED = "silenced"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class AlertVerdict:
    """A verdict. `is_firing` is None if it is not known or between the limits; an open alert then stays, and none
    is opened.
    """

    is_firing: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class AlertKind:
    """A kind of alert. `notifies` is False if another event already notifies the team. `advice` says what to do."""

    code: str
    label: str
    advice: str
    notifies: bool = True
