"""Change requests and the checks before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway_client.types.base import Answer
from slipway_client.types.deployments import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCheck(Answer):
    """A preflight check of a request. `ok` is None while unknown; a failed one with `is_blocking` refuses the
    request.
    """

    name: str
    ok: bool | None
    detail: str
    fix: str
    is_blocking: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Answer):
    """US dollars as text; None: unknown."""

    per_hour: str | None
    # With several instance types; the other amounts are those of the most expensive.
    cheapest_per_hour: str | None = None
    month_min: str | None
    month_max: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight(Answer):
    can_submit: bool
    checks: tuple[PreflightCheck, ...]
    cost: Cost
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePreflight(Answer):
    can_submit: bool
    checks: tuple[PreflightCheck, ...]
    cost: Cost | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEvidence(Answer):
    """The evidence of a version from an environment; `golden` is passed, failed, not run or none."""

    environment: str
    deployment: str
    revision_number: int
    is_finished: bool
    progress: str
    golden: str
    golden_detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionTarget(Answer):
    id: int
    name: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion(Answer):
    """The environments to which a deployment's version can go next. `new_deployment` is a request without a name."""

    environment: str
    version_id: int
    is_possible: bool
    evidence: PromotionEvidence | None
    checks: tuple[PreflightCheck, ...]
    targets: tuple[PromotionTarget, ...]
    new_deployment: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredApproval(Answer):
    """One rule that the change needs, and how far it is met."""

    rule: str
    approvers: str
    needed: int
    given: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Answer):
    id: int
    kind: str
    state: str
    state_reason: str = ""
    team: str
    deployment: str
    deployment_id: int
    environment: str
    # Who gets answers at the address afterwards: open, keys, or empty where no revision comes.
    access: str = ""
    opens_address: bool = False
    requester: str
    comment: str = ""
    revision: Revision | None
    checks: tuple[PreflightCheck, ...]
    cost: Mapping[str, Any]
    promotion: Mapping[str, Any]
    evidence_hash: str = ""
    required_approvals: tuple[RequiredApproval, ...]
    created_at: datetime
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest(Answer):
    """A request that you may approve or reject now. `kind` is deployment, pipeline (`id` is the change request's),
    batch-job or fleet-action.
    """

    kind: str
    id: int
    team: str
    title: str
    detail: str
    requester: str
    requested_at: datetime
    path: str
