"""Taints that the platform lets teams tolerate, of nodes and of devices."""

from __future__ import annotations

from deployments.spec.domain import node_selection
from deployments.spec.domain.placement.setting import FIX_BY_POLICY, ClusterRules, PlacementFinding


def check_allowed(title: str, text: str, cluster: ClusterRules) -> PlacementFinding:
    """Check that the platform allows the taints: it lists them with the value, or without one for every value."""
    allowed = cluster.policy.allowed_taints
    refused = [taint for taint in node_selection.split_taints(text) if taint not in allowed]
    if not refused:
        return PlacementFinding(
            title, ok=True, detail=f"{text} may be tolerated on {cluster.name}."
        )
    listed = ", ".join(allowed) or "none; leave it empty"
    detail = f"{', '.join(refused)} may not be tolerated on {cluster.name}. Allowed: {listed}."
    return PlacementFinding(title, ok=False, detail=detail, fix=FIX_BY_POLICY)
