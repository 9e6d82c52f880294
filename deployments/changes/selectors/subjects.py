"""The subjects of change requests, and what the request machine needs to know of each.

The states, approvals, evidence and emergencies of a request are the same for every subject; what differs is behind
`ChangeSubject`. Features register theirs in `apps.ready()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from deployments.approvals.domain.rules import ChangeFacts
from deployments.manifests.domain.metadata import Manifest
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.preflight.domain.checks import Check, Cost
from portal.accounts.policy import Actor


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a request. `title` is a sentence in the imperative; `consequence` is what approving does."""

    title: str
    detail: str
    consequence: str


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A field of the desired state: as it is now, and as requested."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class GuardLine:
    label: str
    source: str
    limit: str
    query: str = ""
    is_dry_run: bool = False


def deployment_of(change: ChangeRequest) -> Deployment:
    """Return the deployment of a request about one."""
    if change.deployment is None:
        raise ValueError(f"change request {change.pk} is not about a deployment")
    return change.deployment


def pipeline_of(change: ChangeRequest) -> Pipeline:
    """Return the pipeline of a request about one."""
    if change.pipeline is None:
        raise ValueError(f"change request {change.pk} is not about a pipeline")
    return change.pipeline


class Rendered(Protocol):
    @property
    def manifests(self) -> Sequence[Manifest]: ...

    def to_yaml(self) -> str: ...


R = TypeVar("R", bound=Rendered)


class ChangeSubject(ABC, Generic[R]):
    """A reader of one kind of subject for requests about it. Methods take a request about that kind."""

    @abstractmethod
    def facts(self, change: ChangeRequest) -> ChangeFacts:
        """Return the facts that approval rules match on."""

    @abstractmethod
    def describe(self, change: ChangeRequest) -> Description: ...

    @abstractmethod
    def diff(self, change: ChangeRequest) -> list[ChangedField]:
        """Compare the subject field by field. Empty for a request that leaves the fields as they are."""

    @abstractmethod
    def render(self, change: ChangeRequest) -> R | None:
        """Return what approving writes, which the other methods take. None for a request that only removes."""

    @abstractmethod
    def evidence(self, change: ChangeRequest, rendered: R | None) -> Mapping[str, Any]:
        """Return what an approval binds to besides the rules, the manifests and the subject's place."""

    @abstractmethod
    def checks(
        self, change: ChangeRequest, rendered: R | None
    ) -> tuple[tuple[Check, ...], Cost | None]:
        """Run every check of the request again. Network calls: outside any transaction."""

    @abstractmethod
    def require_all(self, checks: Sequence[Check]) -> None:
        """Raise Invalid or QuotaExceeded with every refusal and its fix."""

    @abstractmethod
    def retire_unbegun(self, change: ChangeRequest, *, actor: Actor, reason: str) -> None:
        """Close a subject of which no request was ever applied. Call inside the request's transaction."""

    def require_still_possible(self, change: ChangeRequest, rendered: R | None) -> None:
        """Check again what other approvals can break. Call inside the transaction of the approval, which holds the
        team's row.
        """

    def guards(self, change: ChangeRequest) -> list[GuardLine]:
        """Return the guards of a rollout."""
        return []

    def list_golden_ids(self, change: ChangeRequest) -> tuple[int, ...]:
        """Return the keys of the golden requests that are approved with the request."""
        return ()

    def promotion(self, change: ChangeRequest) -> Mapping[str, Any]:
        """Return the present evidence of the version in an earlier environment. Empty if there is none."""
        return {}

    def metadata(self, change: ChangeRequest) -> Mapping[str, Any]:
        """Return the stated metadata of what will run."""
        return {}

    def preload(self, requests: Sequence[ChangeRequest]) -> None:
        """Read at once what describing each of them needs."""

    def note(self, change: ChangeRequest, *, kind: str, message: str, actor: Actor) -> None:
        """Add a line to the subject's timeline, where it has one."""


_subjects: dict[type[Deployment | Pipeline], ChangeSubject[Any]] = {}


def register(model: type[Deployment | Pipeline], subject: ChangeSubject[Any]) -> None:
    """Register a kind of subject. Call it in `apps.ready()`; registering twice is harmless."""
    _subjects[model] = subject


def subject_of(change: ChangeRequest) -> ChangeSubject[Any]:
    return _subjects[Deployment if change.deployment_id else Pipeline]


def preload(requests: Sequence[ChangeRequest]) -> None:
    """Read for a list what describing each of its requests needs."""
    for subject in _subjects.values():
        own = [change for change in requests if subject_of(change) is subject]
        if own:
            subject.preload(own)
