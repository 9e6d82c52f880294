"""Every state and every legal transition. Services move rows only along these."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class VersionState(StrEnum):
    UPLOADING = "uploading"
    VERIFYING = "verifying"
    READY = "ready"
    QUARANTINED = "quarantined"
    ARCHIVED = "archived"
    FAILED = "failed"


class ImportKind(StrEnum):
    S3 = "s3"
    URL = "url"
    MLFLOW = "mlflow"
    HUGGING_FACE = "huggingface"


class ImportState(StrEnum):
    RUNNING = "running"
    # Nothing is lost: it can be resumed until its version expires.
    FAILED = "failed"
    CANCELED = "canceled"
    DONE = "done"


class ChangeState(StrEnum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    APPLYING = "applying"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class ChangeKind(StrEnum):
    DEPLOY = "deploy"
    CANARY = "canary"
    PROMOTE = "promote"
    SCALE = "scale"
    ROLL_BACK = "roll_back"
    STOP = "stop"
    START = "start"
    RETIRE = "retire"

    @property
    def noun(self) -> str:
        """The noun for sentences, as in "the roll back of vision/detector"."""
        nouns = {"deploy": "deployment", "promote": "promotion", "scale": "scaling"}
        nouns |= {"roll_back": "roll back", "retire": "retirement"}
        return nouns.get(self.value, self.value)


class Environment(StrEnum):
    """The environment of a deployment. Approval rules differ by it."""

    DEVELOPMENT = "development"
    STAGING = "staging"
    PRODUCTION = "production"


class DriftPolicy(StrEnum):
    """The reaction to edits of a deployment's objects on the cluster."""

    RE_APPLY = "re-apply"
    HOLD = "hold"


class DeploymentState(StrEnum):
    """The observed state of a deployment, never set by hand."""

    PENDING = "pending"
    PROGRESSING = "progressing"
    READY = "ready"
    DEGRADED = "degraded"
    STOPPED = "stopped"
    RETIRED = "retired"


class RolloutPhase(StrEnum):
    PREPARING = "preparing"
    RUNNING = "running"
    PAUSED = "paused"
    PROMOTING = "promoting"
    # The candidate is stable; the old revision stays warm without traffic.
    WATCHING = "watching"
    COMPLETED = "completed"
    ABORTING = "aborting"
    ABORTED = "aborted"


# Phases whose evidence is read.
JUDGED_PHASES: Final = (RolloutPhase.RUNNING, RolloutPhase.PAUSED, RolloutPhase.WATCHING)


VERSION: Final[Mapping[VersionState, frozenset[VersionState]]] = {
    VersionState.UPLOADING: frozenset({VersionState.VERIFYING, VersionState.FAILED}),
    VersionState.VERIFYING: frozenset(
        {VersionState.READY, VersionState.QUARANTINED, VersionState.FAILED}
    ),
    # A version with a new declaration is verified again.
    # A changed scanner may say something else about a file.
    VersionState.READY: frozenset(
        {VersionState.ARCHIVED, VersionState.VERIFYING, VersionState.QUARANTINED}
    ),
    # A released version that has no serving repository yet continues its verification.
    VersionState.QUARANTINED: frozenset(
        {VersionState.READY, VersionState.VERIFYING, VersionState.ARCHIVED}
    ),
    VersionState.ARCHIVED: frozenset({VersionState.READY}),
    VersionState.FAILED: frozenset(),
}

IMPORT: Final[Mapping[ImportState, frozenset[ImportState]]] = {
    ImportState.RUNNING: frozenset({ImportState.FAILED, ImportState.CANCELED, ImportState.DONE}),
    ImportState.FAILED: frozenset({ImportState.RUNNING, ImportState.CANCELED}),
    ImportState.CANCELED: frozenset(),
    ImportState.DONE: frozenset(),
}

CHANGE: Final[Mapping[ChangeState, frozenset[ChangeState]]] = {
    ChangeState.DRAFT: frozenset({ChangeState.SUBMITTED, ChangeState.WITHDRAWN}),
    ChangeState.SUBMITTED: frozenset(
        {
            ChangeState.APPROVED,
            ChangeState.REJECTED,
            ChangeState.WITHDRAWN,
            ChangeState.EXPIRED,
        }
    ),
    # An approval whose evidence no longer holds returns to the approvers.
    ChangeState.APPROVED: frozenset(
        {ChangeState.APPLYING, ChangeState.SUBMITTED, ChangeState.WITHDRAWN, ChangeState.EXPIRED}
    ),
    ChangeState.APPLYING: frozenset({ChangeState.DONE, ChangeState.FAILED}),
    ChangeState.DONE: frozenset(),
    ChangeState.FAILED: frozenset(),
    ChangeState.REJECTED: frozenset(),
    ChangeState.WITHDRAWN: frozenset(),
    ChangeState.EXPIRED: frozenset(),
}

DEPLOYMENT: Final[Mapping[DeploymentState, frozenset[DeploymentState]]] = {
    DeploymentState.PENDING: frozenset(
        {DeploymentState.PROGRESSING, DeploymentState.READY, DeploymentState.RETIRED}
    ),
    DeploymentState.PROGRESSING: frozenset(
        {
            DeploymentState.READY,
            DeploymentState.DEGRADED,
            DeploymentState.STOPPED,
            DeploymentState.RETIRED,
        }
    ),
    DeploymentState.READY: frozenset(
        {
            DeploymentState.PROGRESSING,
            DeploymentState.DEGRADED,
            DeploymentState.STOPPED,
            DeploymentState.RETIRED,
        }
    ),
    DeploymentState.DEGRADED: frozenset(
        {
            DeploymentState.PROGRESSING,
            DeploymentState.READY,
            DeploymentState.STOPPED,
            DeploymentState.RETIRED,
        }
    ),
    DeploymentState.STOPPED: frozenset({DeploymentState.PROGRESSING, DeploymentState.RETIRED}),
    DeploymentState.RETIRED: frozenset(),
}

ROLLOUT: Final[Mapping[RolloutPhase, frozenset[RolloutPhase]]] = {
    RolloutPhase.PREPARING: frozenset(
        {RolloutPhase.RUNNING, RolloutPhase.PAUSED, RolloutPhase.ABORTING}
    ),
    RolloutPhase.RUNNING: frozenset(
        {RolloutPhase.PAUSED, RolloutPhase.PROMOTING, RolloutPhase.ABORTING}
    ),
    RolloutPhase.PAUSED: frozenset(
        {
            RolloutPhase.PREPARING,
            RolloutPhase.RUNNING,
            RolloutPhase.PROMOTING,
            RolloutPhase.ABORTING,
        }
    ),
    RolloutPhase.PROMOTING: frozenset(
        {RolloutPhase.WATCHING, RolloutPhase.COMPLETED, RolloutPhase.ABORTING}
    ),
    RolloutPhase.WATCHING: frozenset({RolloutPhase.COMPLETED, RolloutPhase.ABORTING}),
    RolloutPhase.ABORTING: frozenset({RolloutPhase.ABORTED}),
    RolloutPhase.COMPLETED: frozenset(),
    RolloutPhase.ABORTED: frozenset(),
}


class AdviceState(StrEnum):
    """An item of advice. OPEN again: its snooze expired, someone took it up again, or its request ended."""

    OPEN = "open"
    SNOOZED = "snoozed"
    DISMISSED = "dismissed"
    # A change request carries it; what it promised is frozen.
    REQUESTED = "requested"
    APPLIED = "applied"
    # A month after it was applied.
    CHECKED = "checked"


ADVICE: Final[Mapping[AdviceState, frozenset[AdviceState]]] = {
    AdviceState.OPEN: frozenset(
        {AdviceState.SNOOZED, AdviceState.DISMISSED, AdviceState.REQUESTED}
    ),
    AdviceState.SNOOZED: frozenset(
        {AdviceState.OPEN, AdviceState.DISMISSED, AdviceState.REQUESTED}
    ),
    AdviceState.DISMISSED: frozenset({AdviceState.OPEN}),
    AdviceState.REQUESTED: frozenset({AdviceState.OPEN, AdviceState.APPLIED}),
    AdviceState.APPLIED: frozenset({AdviceState.CHECKED}),
    AdviceState.CHECKED: frozenset(),
}


class PipelineChangeKind(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    STOP = "stop"
    START = "start"
    RETIRE = "retire"

    @property
    def noun(self) -> str:
        """The noun for sentences, as in "the creation of pipeline vision/both"."""
        return {"create": "creation", "retire": "retirement"}.get(self.value, self.value)


class ProbePurpose(StrEnum):
    BEFORE_TRAFFIC = "before traffic"
    PROBE = "probe"


class ProbeVerdict(StrEnum):
    """The verdict of a probe. WAITING means unknown: there is no response yet, or the request could not be sent."""

    WAITING = "waiting"
    PASSED = "pass"
    FAILED = "fail"


class HealthCheckKind(StrEnum):
    """The kinds of checks of the watch after a rollout."""

    BASELINE = "baseline"
    GOLDEN = "golden"
    ANSWERS = "answers"


class HealthVerdict(StrEnum):
    OK = "ok"
    FAILED = "failed"
    NOT_KNOWN = "not known"


class TargetMetric(StrEnum):
    """The metric of a standing target, which defines what counts as a good request."""

    AVAILABILITY = "availability"
    P95 = "p95"
    FIRST_TOKEN = "first_token"  # noqa: S105  a metric, not a password


class ConsumerKind(StrEnum):
    """The kind of a caller."""

    PERSON = "person"
    SERVICE = "service"
