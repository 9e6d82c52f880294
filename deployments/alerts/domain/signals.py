"""What a kind of alert says of one subject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AlertState(StrEnum):
    OPEN = "open"
    SILENCED = "silenced"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Finding:
    """`is_firing` None: not known, or between the limits; then an open alert stays and none is opened."""

    is_firing: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """`notifies` is False where another event already notifies the team. `advice` says what to do."""

    code: str
    label: str
    advice: str
    notifies: bool = True
