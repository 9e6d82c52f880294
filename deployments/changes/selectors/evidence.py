"""Everything that an approval binds to: the rules, the manifests, and the state that they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.approvals.domain.requirement import Requirement
from deployments.approvals.selectors import approvals
from deployments.changes.selectors.subjects import ChangeSubject, Rendered, subject_of
from deployments.environments.domain import promotion
from deployments.models import ChangeRequest
from deployments.spec.domain.digests import digest_of


@dataclass(frozen=True, slots=True)
class ReviewedChange:
    """A request as it is at this moment, evaluated once and passed to every decision on it.

    `digest` is SHA-256 over everything; `golden` are keys of the golden requests among it.
    """

    subject: ChangeSubject[Any]
    required: tuple[Requirement, ...]
    golden: tuple[int, ...]
    promotion: Mapping[str, Any]
    rendered: Rendered | None
    digest: str

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the request's row."""
        return {
            "evidence_hash": self.digest,
            "required": [requirement.to_json() for requirement in self.required],
            "golden": list(self.golden),
            "promotion": dict(self.promotion),
        }


def review(change: ChangeRequest, rendered: Rendered | None = None) -> ReviewedChange:
    """Evaluate a request. The rules are part of it: an approval under one rule is none under another.

    `rendered` is what the request writes, if it is rendered already.
    """
    subject = subject_of(change)
    required = approvals.required_now(subject.facts(change))
    golden = subject.list_golden_ids(change)
    shown_before = subject.promotion(change)
    rendered = subject.render(change) if rendered is None else rendered
    target = change.subject
    digest = digest_of(
        {
            "kind": change.kind,
            "subject": [target.cluster_id, target.namespace, target.name],
            "environment": target.environment,
            "is_stopped": target.is_stopped,
            "rules": [_terms_of(requirement) for requirement in required],
            "manifests": [] if rendered is None else rendered.manifests,
            "golden": list(golden),
            "promotion": promotion.bound_part(shown_before),
            **subject.evidence(change, rendered),
        }
    )
    return ReviewedChange(subject, required, golden, shown_before, rendered, digest)


def digest(change: ChangeRequest) -> str:
    return review(change).digest


def _terms_of(requirement: Requirement) -> dict[str, Any]:
    """Return the terms of a requirement without its explanation, whose wording may change at any time."""
    return {name: value for name, value in requirement.to_json().items() if name != "why"}
