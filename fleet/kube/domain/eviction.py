"""Evictions: deletions of pods that disruption budgets can refuse."""

from __future__ import annotations

from typing import Any, Final

from fleet.kube.domain.errors import Throttled

_BUDGET: Final = "DisruptionBudget"


def render_eviction(namespace: str, pod: str, *, uid: str) -> dict[str, Any]:
    """Return the Eviction of exactly this pod, never of a newer one with its name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def budget_refusal(error: Throttled) -> str:
    """Return what the disruption budget says. Empty if the API server is merely busy."""
    causes = [cause.message for cause in error.causes if cause.reason == _BUDGET]
    if causes:
        return " ".join(causes)
    return error.message if "disruption budget" in error.message else ""
