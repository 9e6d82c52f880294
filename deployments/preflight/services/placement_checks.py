"""Check where the pods of a request may run against the rules of its cluster."""

from __future__ import annotations

from deployments.manifests.selectors import rendering
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.setting import ClusterRules
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.selectors.clusters import ClusterInfo


def check_rules(spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """Check the placement against the serving policy and the provisioner. Empty if no rule is about it."""
    policy = rendering.policy_in_force(cluster.serving)
    rules = ClusterRules(cluster.name, policy, cluster.capabilities.node_labels)
    return [
        Check(finding.title, ok=finding.ok, detail=finding.detail, fix=finding.fix)
        for finding in catalogue.check(spec, rules)
    ]
