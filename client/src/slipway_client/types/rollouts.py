"""Rollouts: steps, guards, events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard(Answer):
    guard: str
    stable: str
    candidate: str
    limit: str
    verdict: str
    message: str
    is_dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState(Answer):
    weight: int
    soak_seconds: int
    min_requests: int
    index: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(Answer):
    """A rollout. `evidence_hash` is what a promotion confirms."""

    id: int
    deployment_id: int
    change_id: int
    phase: str
    phase_reason: str
    stable: str
    candidate: str
    step_index: int
    steps: tuple[StepState, ...]
    requested_weight: int
    observed_weight: int | None
    guards: tuple[Guard, ...]
    next_weight: int | None
    is_promotable: bool
    promotable_reason: str
    watch_until: datetime | None
    evidence_hash: str
    can_promote: bool
    can_stop: bool
    is_final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutEvent(Answer):
    id: int
    at: datetime
    kind: str
    message: str
    actor_name: str
    step_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutNews(Answer):
    """Pass `after` to get only new events."""

    events: tuple[RolloutEvent, ...]
    after: int
    rollout: Rollout | None
    is_final: bool
