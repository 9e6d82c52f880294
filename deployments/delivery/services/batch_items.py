"""Small reads of the states of a pass."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.delivery.domain.reconcile import NextStep
from deployments.delivery.services.reconcile_state import ReconcileState
from portal.core import tracing


def traced(state: ReconcileState) -> tuple[str, tracing.Attributes]:
    """Return the trace of the deployment and what names it there."""
    deployment = state.deployment
    named = {"slipway.deployment": str(deployment), "slipway.cluster": deployment.cluster.name}
    return deployment.trace, named


def without(
    items: Sequence[tuple[ReconcileState, NextStep]], unchecked: Sequence[ReconcileState]
) -> list[ReconcileState]:
    """Return the states of the items that are not among the unchecked."""
    return [state for state, _ in items if state not in unchecked]
