"""The context of the Manifests tab: each object beside its manifest, and the drift that awaits a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from deployments.delivery.domain.drift import DriftOutcome
from deployments.delivery.domain.edits import Edit
from deployments.delivery.domain.object_comparison import ObjectState
from deployments.delivery.services import drift_decisions, live_objects
from deployments.delivery.services.live_objects import ObjectView
from deployments.models import Deployment
from portal.accounts.models import User


def build_context(user: User, deployment: Deployment) -> dict[str, Any]:
    compared = live_objects.compare(actor=user, deployment_id=deployment.pk)
    drift = drift_decisions.view_of(deployment)
    is_held = drift.drift.outcome == DriftOutcome.PENDING
    return {
        "objects": compared.objects,
        "counts": describe_counts(compared.objects),
        "has_differences": any(view.comparison.edits for view in compared.objects),
        "unreachable": compared.problem,
        "drift": drift,
        "gone_edits": list_gone(drift.drift.edits, compared.objects) if is_held else [],
    }


def describe_counts(objects: Sequence[ObjectView]) -> str:
    """Describe how many objects are in which state: "9 objects: 8 in sync, 1 drifted"."""
    if not objects:
        return ""
    counts = Counter(view.comparison.state for view in objects)
    number = "1 object" if len(objects) == 1 else f"{len(objects)} objects"
    states = [f"{counts[state]} {state}" for state in ObjectState if counts[state]]
    return f"{number}: {', '.join(states)}"


def list_gone(held: Iterable[Edit], objects: Iterable[ObjectView]) -> list[Edit]:
    """List the held edits that are no longer on the cluster. The next check closes them."""
    live = {(edit.kind, edit.name, edit.path) for view in objects for edit in view.comparison.edits}
    return [edit for edit in held if (edit.kind, edit.name, edit.path) not in live]
