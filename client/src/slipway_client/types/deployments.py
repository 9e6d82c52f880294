"""Deployments: desired and observed state, statistics, logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(Answer):
    """A revision of a deployment. `version` is "model:number"."""

    number: int
    version: str
    version_id: int
    workload_name: str
    spec: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired(Answer):
    """The desired state of a deployment. `candidate_weight` is the percentage of requests routed to the candidate."""

    stable: Revision | None
    candidate: Revision | None
    candidate_weight: int
    is_stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Answer):
    at: datetime | None
    candidate_weight: int | None
    revisions: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(Answer):
    id: int
    team: str
    name: str
    cluster: str
    namespace: str
    environment: str
    url: str
    state: str
    state_reason: str = ""
    is_current: bool
    desired: Desired
    observed: Observed
    rollout_id: int | None
    created_at: datetime
    first_ready_at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentEvent(Answer):
    id: int
    at: datetime
    kind: str
    message: str
    revision_number: int | None
    actor_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingStats(Answer):
    """Over the last `seconds`, summed over the pods; None is unknown."""

    seconds: int
    requests_per_second: float | None
    error_ratio: float | None
    mean_latency_ms: float | None
    p95_ms: float | None
    busy_ratio: float | None
    success: int
    failure: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionStats(Answer):
    number: int
    role: str
    stats: ServingStats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStats(Answer):
    """The statistics of a deployment. `total` is None when no pod was polled in the interval."""

    seconds: int
    total: ServingStats | None
    revisions: tuple[RevisionStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPod(Answer):
    name: str
    phase: str
    is_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Answer):
    """The last lines of one pod; `problem` says why there are none."""

    pod: str
    pods: tuple[LogPod, ...]
    text: str
    problem: str
