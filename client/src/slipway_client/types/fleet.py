"""Nodes, and what people request to be done to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Answer):
    """A notice about a node. `kind` is reclaim, removal or gpu-fault."""

    kind: str
    title: str
    detail: str
    reported_by: str
    xid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Answer):
    """A GPU node. `usd_per_hour_amount` None is not known."""

    id: int
    cluster_name: str
    name: str
    instance_type: str
    capacity_type: str
    gpu_product: str
    gpu_count: int
    is_ready: bool
    is_schedulable: bool
    usd_per_hour_amount: Decimal | None
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange(Answer):
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected(Answer):
    """Pods of one deployment; its names are empty for who is not in its team."""

    team_slug: str
    deployment: str
    pods: int
    gpus: int
    without_room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBudget(Answer):
    namespace: str
    name: str
    pods: int
    hold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvidence(Answer):
    changes: tuple[FieldChange, ...]
    deployments: tuple[Affected, ...]
    budgets: tuple[HeldBudget, ...]
    warnings: tuple[str, ...]
    usd_per_month_change: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAction(Answer):
    """An action on the fleet. `state_reason` of a running one is how far it is."""

    id: int
    kind: str
    cluster: str
    target_kind: str
    target: str
    node_id: int | None
    comment: str
    requester: str
    state: str
    state_reason: str
    decided_by: str | None = None
    decision_comment: str
    created_at: datetime
    deadline_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetActionDetails(FleetAction):
    """An approval names `evidence_hash`; `why_not_decide` is empty where you may approve or reject it."""

    evidence: ActionEvidence
    evidence_hash: str
    why_not_decide: str
