"""Alerts of teams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert(Answer):
    """An alert. `advice` says what to do; `path` is that of the page which shows what it is about."""

    id: int
    team: str
    kind: str
    state: str
    subject: str
    message: str
    advice: str
    path: str
    deployment_id: int | None
    opened_at: datetime
    ended_at: datetime | None
    silenced_until: datetime | None
    silence_reason: str
