"""The telemetry of targets: good and bad requests of their deployments, all revisions together, by the minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from deployments.models import Revision, ServiceTarget
from deployments.states import TargetMetric
from deployments.targets.domain.burn import RequestSums
from fleet.telemetry.selectors import hourly, service_levels
from fleet.telemetry.selectors.hourly import HourlyWorkload
from fleet.telemetry.selectors.service_levels import MinuteCount

Minutes = Mapping[datetime, RequestSums]


def read_minutes(targets: Sequence[ServiceTarget], *, start: datetime) -> dict[int, Minutes]:
    """Read the minutes of each target, by its primary key. At most four queries for targets of one metric."""
    workloads = _workloads(targets)
    made: dict[int, Minutes] = {}
    for metric in TargetMetric:
        of_metric = [target for target in targets if target.metric == metric]
        if of_metric:
            made.update(_of_metric(metric, of_metric, workloads, start))
    return made


def _of_metric(
    metric: TargetMetric,
    targets: Sequence[ServiceTarget],
    workloads: Mapping[int, Sequence[int]],
    start: datetime,
) -> dict[int, Minutes]:
    owner = {pk: target for target in targets for pk in workloads[target.deployment_id]}
    by_target: dict[int, dict[datetime, RequestSums]] = {target.pk: {} for target in targets}
    for count in _read(metric, owner, start) if owner else ():
        of_target = by_target[owner[count.workload_id].pk]
        before = of_target.get(count.minute, RequestSums(known_minutes=1))
        of_target[count.minute] = before + RequestSums(count.total, count.bad)
    return dict(by_target)


def _read(
    metric: TargetMetric, owner: Mapping[int, ServiceTarget], start: datetime
) -> list[MinuteCount]:
    if metric == TargetMetric.AVAILABILITY:
        return service_levels.without_errors(owner, start=start)
    limits = {pk: target.threshold_ms or 0 for pk, target in owner.items()}
    if metric == TargetMetric.P95:
        return service_levels.p95_within(owner, start=start, threshold_ms=limits)
    return service_levels.first_token_within(owner, start=start, threshold_ms=limits)


def _workloads(targets: Sequence[ServiceTarget]) -> dict[int, list[int]]:
    """Return the ids of the workloads of each deployment; a revision that fleet does not know has none."""
    by_id = {target.deployment_id: target.deployment for target in targets}
    numbers = Revision.objects.filter(deployment__in=by_id).values_list("deployment_id", "number")
    keys = {}
    for deployment_id, number in numbers:
        row = by_id[deployment_id]
        key = HourlyWorkload(row.cluster_id, row.namespace, f"{row.name}-r{number}")
        keys[key] = deployment_id
    found: dict[int, list[int]] = {deployment_id: [] for deployment_id in by_id}
    for key, workload_id in hourly.find(list(keys)).items():
        found[keys[key]].append(workload_id)
    return found
