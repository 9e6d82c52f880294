"""The portal's responses as frozen dataclasses. `raw` of each is the whole response.

Written by `make openapi` from docs/openapi.yaml and client/answers.toml; edit those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from slipway_client.types.base import Answer, ScoreNames


@dataclass(frozen=True, slots=True, kw_only=True)
class MyTeam(Answer):
    """A team of the account, with its role there."""

    slug: str
    name: str
    role: str
    """viewer, member, lead, or admin for platform admins"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Answer):
    """The token of the request: what it may do, and until when."""

    name: str
    scopes: tuple[str, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Me(Answer):
    """The account that sends the request."""

    username: str
    display_name: str
    is_platform_admin: bool
    is_service_account: bool
    teams: tuple[MyTeam, ...]
    """Teams that the token acts on."""
    token: Grant | None
    """The token of this request. None for a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Answer):
    """A cluster to deploy to."""

    id: int
    name: str
    kind: str
    region: str
    is_reachable: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias(Answer):
    """A name that points to a version of a model."""

    name: str
    version: int
    is_protected: bool
    moved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Answer):
    """A model of a team."""

    id: int
    team: str
    name: str
    description: str
    task: str
    aliases: tuple[Alias, ...]
    created_by: str
    created_at: datetime

    def __str__(self) -> str:
        return f"{self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Answer):
    """A check of a version's verification; `ok` is None while it is unknown or was not tried."""

    name: str
    ok: bool | None
    """None if unknown yet, or not tried."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation(Answer):
    """A signature or provenance of a version; `reason` says why it is not trusted."""

    id: int
    filename: str
    state: str
    """trusted: a trusted signer signed exactly the bytes of the version; untrusted: no trusted
    signer signed it; invalid: unreadable, or about other bytes
    """
    reason: str
    is_provenance: bool
    """false: a signature, or not read"""
    signer: str | None = None
    identity: str
    """Identity in the signing certificate. Empty for a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Answer):
    """An input or output of a model."""

    name: str
    dtype: str
    """Triton's data type without TYPE_"""
    dims: tuple[int, ...]
    """Dimensions as in the file, with the batch dimension. -1 means dynamic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature(ScoreNames, Answer):
    """The inputs and outputs of a model; `max_batch_size` 0 means no batching."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    """0: no batching"""
    class_names: tuple[str, ...] = ()
    """Class names of a forest that classifies, in the order of its scores. A single score is
    that of the second class.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion(Answer):
    """A version in a list, without signature and configuration, which can be large."""

    id: int
    team: str
    model: str
    number: int
    state: str
    state_reason: str
    """why it is quarantined or failed, with the fix"""
    format: str
    size_bytes: int | None
    declared_size_bytes: int
    sha256: str
    """SHA-256 of the stored file; of several files, that of what sha256sum prints for them,
    sorted by path. Empty until verified.
    """
    metadata: Mapping[str, Any]
    """well-known texts; metrics and directions by name, labels by key"""
    checks: tuple[Check, ...]
    aliases: tuple[str, ...]
    created_by: str
    created_at: datetime
    ready_at: datetime | None
    deadline_at: datetime | None
    """when uploading, verifying, or a release from quarantine ends"""

    def __str__(self) -> str:
        return f"{self.team}/{self.model}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(ListedVersion):
    """A version with its signature and configuration."""

    signature: Signature | None
    config_pbtxt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile(Answer):
    """A file of a version. All parts but the last have `part_size` bytes."""

    path: str
    size_bytes: int
    part_size: int
    """bytes of every part except the last"""
    part_count: int
    sha256: str
    """The SHA-256 of the stored bytes. Until they are verified, the declared one."""
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedUpload(Version):
    """A version and the files that have to be sent."""

    files: tuple[ArtifactFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUrl(Answer):
    """A URL for one PUT of exactly `size_bytes`, with these headers."""

    path: str
    """Path of the file."""
    number: int
    url: str
    """Address for one PUT of exactly size_bytes."""
    size_bytes: int
    headers: Mapping[str, Any]
    """send these with the PUT; they are signed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Answer):
    """The state of a file's upload; the parts in `missing` still have to be sent."""

    part_size: int
    part_count: int
    missing: tuple[int, ...]
    """parts that still have to be sent"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import(Answer):
    """An import of files into the version `version_id`."""

    id: int
    version_id: int
    version: str
    team: str
    model: str
    number: int
    kind: str
    address: str
    """Address without credentials."""
    server: str
    """the MLflow server; empty for other kinds"""
    pin: str
    """the commit or version that the address named"""
    facts: Mapping[str, Any]
    """Facts of the source beyond the metadata of the version. MLflow has flavor, flavors,
    run_id, run_name, signature, parameters, tags, aliases, left_out (files that were not
    copied) and without_place (metrics, parameters and tags whose names or values metadata
    does not take)
    """
    state: str
    error: str
    """why it failed or waits, with the fix"""
    files_done: int
    files_count: int
    """0 until the source is listed"""
    copied_bytes: int
    total_bytes: int
    can_resume: bool
    created_by: str
    created_at: datetime
    ended_at: datetime | None

    def __str__(self) -> str:
        return f"import of {self.team}/{self.version} from {self.address}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowServer(Answer):
    """An MLflow server that the platform names."""

    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowModel(Answer):
    """A registered model of an MLflow server; `newest` is the number of its newest version,
    empty if there is none.
    """

    name: str
    description: str
    newest: str
    """number of the newest version; empty if there is none"""
    changed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowVersion(Answer):
    """A version of a registered model. It is imported by its `address`."""

    name: str
    number: str
    address: str
    """Address to import it by."""
    run_id: str
    description: str
    status: str
    aliases: tuple[str, ...]
    tags: Mapping[str, Any]
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(Answer):
    """A revision of a deployment; `version` is the model's name, a colon and the number."""

    number: int
    version: str
    version_id: int
    workload_name: str
    spec: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired(Answer):
    """The desired state of a deployment; `candidate_weight` is the percentage of requests that
    the candidate gets.
    """

    stable: Revision | None
    candidate: Revision | None
    candidate_weight: int
    is_stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Answer):
    """The state of a deployment as its cluster last reported it."""

    at: datetime | None
    candidate_weight: int | None
    """None if unknown, or without a candidate."""
    revisions: Mapping[str, Any]
    """State by revision: stage, ready, reason, message, weight, since, and queue. Where it
    names a queue of Kueue, queue has: queue, state (pending, admitted, evicted, ignored),
    waiting (pods), position (of the first pod in the LocalQueue; None if unknown), why,
    eviction.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(Answer):
    """A deployment with its desired and observed state."""

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
    """whether the cluster was observed after the last change of the desired state"""
    desired: Desired
    observed: Observed
    rollout_id: int | None
    """ID of the open rollout, if any."""
    created_at: datetime
    first_ready_at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentEvent(Answer):
    """An event in the history of a deployment."""

    id: int
    at: datetime
    kind: str
    message: str
    revision_number: int | None
    actor_name: str
    """Empty if the portal itself did it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingStats(Answer):
    """Statistics of the last `seconds`, summed over the pods; None means unknown."""

    seconds: int
    requests_per_second: float | None
    error_ratio: float | None
    mean_latency_ms: float | None
    p95_ms: float | None
    """Latency of the slowest pod."""
    busy_ratio: float | None
    success: int
    failure: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionStats(Answer):
    """The statistics of one revision."""

    number: int
    role: str
    """stable, candidate or baseline"""
    stats: ServingStats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStats(Answer):
    """The statistics of a deployment; `total` is None when no pod was polled in the interval."""

    seconds: int
    total: ServingStats | None
    """None if no pod was polled in this interval."""
    revisions: tuple[RevisionStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPod(Answer):
    """A pod of a deployment."""

    name: str
    phase: str
    is_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Answer):
    """The last lines of one pod; `problem` says why there are none."""

    pod: str
    """Empty if the deployment has no pod."""
    pods: tuple[LogPod, ...]
    """newest revision first"""
    text: str
    """the last lines"""
    problem: str
    """why there is no text; empty otherwise"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCheck(Answer):
    """A check of a request; `ok` is None while unknown. A failed one with `is_blocking` refuses
    the request.
    """

    name: str
    ok: bool | None
    """None if unknown."""
    detail: str
    fix: str
    is_blocking: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Answer):
    """The cost of a request in US dollars, as text; None means unknown."""

    per_hour: str | None
    """US dollars; None: unknown"""
    cheapest_per_hour: str | None
    """Price per hour on the cheapest of several instance types. Amounts without this prefix are
    for the most expensive.
    """
    month_min: str | None
    month_max: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight(Answer):
    """The checks and costs of a new deployment before it is requested."""

    can_submit: bool
    checks: tuple[PreflightCheck, ...]
    cost: Cost
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePreflight(Answer):
    """The checks and costs of a change before it is requested."""

    can_submit: bool
    checks: tuple[PreflightCheck, ...]
    """Empty for a retirement."""
    cost: Cost | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset(Answer):
    """Settings by name that a new deployment may start from."""

    id: int
    team: str | None = None
    """The team that may start from it. None: every team may."""
    name: str
    settings: Mapping[str, Any]
    saved_by: str
    saved_at: datetime

    def __str__(self) -> str:
        return f"{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEvidence(Answer):
    """The evidence of one revision with exactly this version in the environment before."""

    environment: str
    deployment: str
    revision_number: int
    is_finished: bool
    progress: str
    golden: str
    """passed, failed, not run, or none"""
    golden_detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionTarget(Answer):
    """A deployment that can take the version."""

    id: int
    name: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion(Answer):
    """An environment to which the version of a deployment can go next."""

    environment: str
    """Environment that the version would enter."""
    version_id: int
    is_possible: bool
    evidence: PromotionEvidence | None
    checks: tuple[PreflightCheck, ...]
    """Requirements of the rules there."""
    targets: tuple[PromotionTarget, ...]
    """deployments of the same model there: request a canary on one of them"""
    new_deployment: Mapping[str, Any]
    """the body of a new deployment there with the settings of this one; it lacks a name"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredApproval(Answer):
    """One rule that matches the change, and how far it is met."""

    rule: str
    approvers: str
    needed: int
    given: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Answer):
    """A change request with what its decision depends on."""

    id: int
    kind: str
    state: str
    state_reason: str = ""
    team: str
    deployment: str
    deployment_id: int
    environment: str
    access: str
    """who can call the address afterwards: open (anyone who reaches the gateway) or keys
    (callers with a key); empty for a change that brings no revision
    """
    opens_address: bool
    """whether callers without a key get answers that they did not get before"""
    requester: str
    comment: str = ""
    revision: Revision | None
    checks: tuple[PreflightCheck, ...]
    cost: Mapping[str, Any]
    promotion: Mapping[str, Any]
    """Evidence of this version from the environment before: deployment, revision, whether its
    rollout is finished, golden requests. The approval binds to it. Empty if there is none.
    """
    evidence_hash: str = ""
    required_approvals: tuple[RequiredApproval, ...]
    created_at: datetime
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest(Answer):
    """A request that you may approve or reject now."""

    kind: str
    """Kind of the request; deployments and pipelines have change requests."""
    id: int
    """ID of the change request, the batch job or the fleet action."""
    team: str
    """Empty for fleet actions."""
    title: str
    detail: str
    requester: str
    """username"""
    requested_at: datetime
    path: str
    """Path of the page where it is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard(Answer):
    """A guard's last result in a rollout."""

    guard: str
    stable: str
    candidate: str
    limit: str
    verdict: str
    """pass, fail, not enough data, not known, not comparable"""
    message: str
    is_dry_run: bool
    """judged and shown, but it decides nothing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState(Answer):
    """A step of a rollout and its state."""

    weight: int
    """percent of requests routed to the candidate; for a shadow: mirrored to it"""
    soak_seconds: int
    min_requests: int
    index: int
    state: str
    """done, current, ahead, left (before its end) or skipped"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(Answer):
    """A rollout. A promotion confirms its `evidence_hash`."""

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
    """Next weight in percent; for a shadow the next mirrored percent, 100 after the last step."""
    is_promotable: bool
    promotable_reason: str
    watch_until: datetime | None
    """until then a failure rolls back to the old revision, which is still warm"""
    evidence_hash: str
    can_promote: bool
    can_stop: bool
    is_final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutEvent(Answer):
    """An event of a rollout."""

    id: int
    at: datetime
    kind: str
    """the phase after the event"""
    message: str
    actor_name: str
    """Empty if the portal itself did it."""
    step_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutNews(Answer):
    """The events of a rollout since `after`; pass it on to get only new ones."""

    events: tuple[RolloutEvent, ...]
    """oldest first, at most 200"""
    after: int
    """pass it as `after` to get only new events"""
    rollout: Rollout | None
    is_final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsKey(Answer):
    """The group of a row of costs."""

    name: str
    team_slug: str
    model: str
    deployment: str
    is_idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow(Answer):
    """The costs of one group in US dollars."""

    key: CostsKey
    amount: Decimal
    estimated_amount: Decimal
    """Cost of hours that are not sealed yet."""
    gpu_hours: Decimal
    is_unpriced: bool
    """no hour of the group has a price: the amount is not known, which is not 0"""
    idle_amount: Decimal
    """its part of idle, where idle is shared; not in `amount`"""
    inferences: int | None
    usd_per_1k_inferences_amount: Decimal | None
    """exact also of fewer than 1,000 inferences, of which pages say that they are too few for a
    price
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs(Answer):
    """The amounts of `rows`, the rows of other pages and `idle` sum to `total_amount` exactly.
    Where idle is shared, their `idle_amount` takes the place of `idle`; where it is hidden
    it is in no amount.
    """

    start: datetime
    end: datetime
    rows: tuple[CostRow, ...]
    """a page of them, the most expensive first"""
    idle: CostRow | None
    idle_rule: str
    """`separate` where a shared rule was requested but nothing was held to share it by"""
    total_amount: Decimal
    previous_total_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusualDay(Answer):
    """A day that cost far more or less than usual."""

    team_slug: str
    """Empty if not attributed to a team."""
    deployment: str
    """Empty for the team as a whole."""
    day: date
    """UTC"""
    amount: Decimal
    """sealed hours"""
    usual_amount: Decimal
    """the median of the 28 days before, or of the same weekday among them: the nearer one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert(Answer):
    """An alert of a team."""

    id: int
    team: str
    kind: str
    state: str
    subject: str
    message: str
    advice: str
    """Steps to take."""
    path: str
    """Path of the page that shows the alert's subject."""
    deployment_id: int | None
    opened_at: datetime
    ended_at: datetime | None
    silenced_until: datetime | None
    silence_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob(Answer):
    """A batch job, over files of rows or over the messages of a queue."""

    id: int
    team: str
    name: str
    version: str
    cluster: str
    state: str
    state_reason: str
    input: str
    output: str
    requester: str
    is_queue: bool
    """it drains a queue until its deadline"""
    total_rows: int | None
    """None for a queue, and until the input was read."""
    done_rows: int
    failed_rows: int
    """Rows that are done and have no answer."""
    cost_limit: Decimal | None
    """until the deadline; None: not known"""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    def __str__(self) -> str:
        return f"batch job {self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQueue(Answer):
    """The progress of a job that drains a queue, in messages."""

    waiting: int | None
    """messages without an answer at waiting_at; None: not known"""
    waiting_at: datetime | None
    answered: int
    dead_letters: int
    retried: int
    """tries after the first"""
    group: str
    """the consumer group; empty: SQS has none"""
    dead_letters_in: str
    """the stream, queue or topic of dead letters"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJobDetails(BatchJob):
    """A batch job with its progress and costs."""

    detail: str
    """Current state of its workers."""
    first_error: str
    queue: BatchQueue | None
    """None for a job over files."""
    chunks: int
    done_chunks: int
    why_not_decide: str
    """Empty where you may approve or reject it."""
    spent: Decimal | None
    """None if unknown."""
    forecast: Decimal | None
    """at the end, at this rate"""
    done_at: datetime | None
    """at this rate"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPrice(Answer):
    """The price of all workers in US dollars; None means unknown."""

    per_hour: Decimal | None
    """all workers; None: not known"""
    cost_limit: Decimal | None
    """until the deadline"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEstimate(BatchPrice):
    """The estimate of a batch job before it starts."""

    spot: BatchPrice
    """the same workers on spot nodes"""
    on_demand: BatchPrice
    """the same workers on on-demand nodes"""
    fits_now: bool | None
    """false, or None: it waits for nodes"""
    capacity: str
    why_approval: str
    """Empty if it starts without a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchUpload(Answer):
    """An upload of a file of rows. Once it is complete, a job can read it as `input`."""

    id: int
    team: str
    path: str
    """the name of the file"""
    size_bytes: int
    input: str
    """the input of a job, once it is complete"""
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPart(Answer):
    """A finished part of a batch job's output."""

    number: int
    first_row: int
    rows: int
    failed_rows: int
    url: str
    """Address for GET at the object store, without a token. Valid for 15 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Answer):
    """An announcement about a node."""

    kind: str
    """reclaim: the provider takes the node back; removal: something else removes it; gpu-fault:
    a GPU of it is faulty
    """
    title: str
    detail: str
    reported_by: str
    """Source of the information."""
    xid: int | None
    """NVIDIA's number of the error; None: another fault, or none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Answer):
    """A GPU node."""

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
    """A field that the action changes, before and after."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected(Answer):
    """Pods of one deployment; without names for who is not in its team."""

    team_slug: str
    deployment: str
    pods: int
    gpus: int
    without_room: int
    """pods that fit on no other node now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBudget(Answer):
    """A disruption budget that does not let its pods be evicted now."""

    namespace: str
    name: str
    pods: int
    hold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvidence(Answer):
    """The effects of an action as they were shown to the requester and the approver."""

    changes: tuple[FieldChange, ...]
    deployments: tuple[Affected, ...]
    budgets: tuple[HeldBudget, ...]
    warnings: tuple[str, ...]
    usd_per_month_change: Decimal | None
    """730 hours"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAction(Answer):
    """An action on the fleet. While it runs, `state_reason` says how far it is."""

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
    """Reason of the state. Of a running action, its progress."""
    decided_by: str | None = None
    decision_comment: str
    created_at: datetime
    deadline_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetActionDetails(FleetAction):
    """An action on the fleet with its evidence. An approval names `evidence_hash`."""

    evidence: ActionEvidence
    """Evidence that the request showed."""
    evidence_hash: str
    why_not_decide: str
    """Empty if you may approve or reject it."""
