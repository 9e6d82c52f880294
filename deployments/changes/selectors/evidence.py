"""All that an approval binds to: what was shown, what will run, and how it will be tried first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.approvals.domain.rules import Requirement
from deployments.approvals.selectors import approvals
from deployments.manifests.domain.metadata import digest_of
from deployments.manifests.selectors import rendered
from deployments.manifests.selectors.rendered import RenderedRevision, identity_of
from deployments.manifests.selectors.rendering import spec_of
from deployments.models import ChangeRequest, Revision
from deployments.quality.selectors import quality
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind

# Stated of the version that serves and shown beside what is asked for.
COMPARED: Final = ("accuracy", "dataset_version")


@dataclass(frozen=True, slots=True)
class Bound:
    """`digest` is SHA-256 over everything; `golden` are keys of the golden requests among it."""

    digest: str
    required: tuple[Requirement, ...]
    golden: tuple[int, ...]


def bind(change: ChangeRequest) -> Bound:
    """As it is now. The rules are part of it: whoever approved under one rule has not approved under
    another.
    """
    required = approvals.required_now(change)
    golden = _golden(change)
    return Bound(_digest(change, required, golden), required, golden)


def digest(change: ChangeRequest) -> str:
    return bind(change).digest


def _golden(change: ChangeRequest) -> tuple[int, ...]:
    """Of a new candidate's model; nothing else is tried before traffic. A saved one never changes."""
    if change.kind != ChangeKind.CANARY or change.revision is None:
        return ()
    rows = quality.golden_requests_of(change.revision.version.model)
    return tuple(sorted(rows.order_by().values_list("pk", flat=True)))


def _digest(change: ChangeRequest, required: Sequence[Requirement], golden: Sequence[int]) -> str:
    deployment, revision = change.deployment, render(change)
    return digest_of(
        {
            "kind": change.kind,
            "deployment": [deployment.cluster_id, deployment.namespace, deployment.name],
            "stable": deployment.stable_revision_id,
            "environment": deployment.environment,
            "is_stopped": deployment.is_stopped,
            "scale": [deployment.scale, change.scale],
            "rules": [_terms_of(rule) for rule in required],
            "manifests": [] if revision is None else revision.manifests,
            "versions": [] if revision is None else _versions_of(revision),
            "beside": _compared(deployment.stable_revision),
            "steps": change.steps,
            "plan": change.plan,
            "golden": list(golden),
        }
    )


def _terms_of(rule: Requirement) -> dict[str, Any]:
    """Without the words, which may be put better any time."""
    return {name: value for name, value in rule.to_json().items() if name != "why"}


def _versions_of(revision: RenderedRevision) -> list[dict[str, Any]]:
    """Identity, metadata and recorded files of every version that the revision loads."""
    return [
        {
            "identity": identity_of(version),
            "metadata": version.metadata,
            "laid_out": version.laid_out,
        }
        for version in (revision.version, *revision.additional)
    ]


def _compared(stable: Revision | None) -> dict[str, Any]:
    stated = {} if stable is None else stable.version.metadata
    return {name: stated[name] for name in COMPARED if name in stated}


def spec_of_change(change: ChangeRequest) -> ServingSpec | None:
    """What would run, and with how many replicas; None for a retirement."""
    if change.revision is None:
        return None
    return spec_of(change.revision, scale=change.scale or None)


def yaml_of_change(change: ChangeRequest) -> str:
    """What approving would write; empty for a retirement, which only removes."""
    revision = render(change)
    return "" if revision is None else revision.to_yaml()


def render(change: ChangeRequest) -> RenderedRevision | None:
    """What approving would write, with the requested replicas; None for a retirement."""
    if change.revision is None:
        return None
    return rendered.render_revision(change.revision, scale=change.scale or None)
