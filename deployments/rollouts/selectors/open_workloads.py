"""The workloads of rollouts that are under way: their blocks need readings more often than Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Collection

from deployments.models import Rollout
from deployments.serving.selectors.deployments import OPEN_PHASES
from deployments.spec.domain.kubernetes_names import workload_name
from fleet.telemetry.selectors.current import WorkloadKey

_REVISIONS = ("stable_revision__number", "candidate_revision__number", "baseline_revision__number")


def list_open_workloads(cluster_ids: Collection[int]) -> list[WorkloadKey]:
    rows = Rollout.objects.filter(phase__in=OPEN_PHASES, deployment__cluster__in=cluster_ids)
    names = ("deployment__cluster", "deployment__namespace", "deployment__name", *_REVISIONS)
    return [
        WorkloadKey(cluster_id, namespace, workload_name(deployment, number))
        for cluster_id, namespace, deployment, *numbers in rows.order_by().values_list(*names)
        for number in numbers
        if number is not None
    ]
