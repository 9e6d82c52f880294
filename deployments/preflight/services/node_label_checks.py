"""Check the labels that a request requires of nodes against what starts the nodes of the cluster."""

from __future__ import annotations

from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain import node_selection
from fleet.clusters.domain.provisioner import NodeLabels

NAME: Final = "Node labels"


def check_labels(required: str, labels: NodeLabels) -> list[Check]:
    """Empty unless a label keeps nodes from starting. Karpenter could start none for other pods either, so it blocks."""
    problem = labels.problem_with(node_selection.read_labels(required))
    if not problem:
        return []
    fix = "Remove the label, or use one that the platform sets on its node pools."
    return [Check(NAME, ok=False, detail=problem, fix=fix)]
