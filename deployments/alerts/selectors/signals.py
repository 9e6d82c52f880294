"""The present verdicts of all kinds of alerts on every subject, in a constant number of queries for any number of
deployments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.urls import reverse

from deployments.alerts.domain.kinds import (
    answers,
    budget,
    cluster_unreachable,
    cost_anomaly,
    gpu_memory,
    idle_gpus,
    node_notices,
    queue_depth,
    slo_burn,
)
from deployments.alerts.domain.signals import AlertVerdict
from deployments.guards.domain.answers.answer_metrics import AnswerKind
from deployments.health.domain import drift
from deployments.health.domain.drift import DayVerdict
from deployments.models import Deployment, DeploymentHealth, ServiceTarget
from deployments.states import HealthVerdict, TargetMetric
from deployments.targets.domain import metrics
from deployments.targets.selectors import targets
from fleet.budgets.selectors import months
from fleet.capacity.selectors import notices
from fleet.capacity.selectors.notices import DeploymentKey
from fleet.clusters.selectors import clusters
from fleet.costs.selectors import anomalies
from fleet.gpus.domain.intervals import hour_of
from fleet.telemetry.selectors import hourly, pressure
from fleet.telemetry.selectors.hourly import HourlyWorkload
from portal.accounts.models import Team

_QUEUE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Signal:
    """The verdict of a kind of alert on a subject. `key` names the subject within its team and kind."""

    kind: str
    key: str
    team: Team
    deployment: Deployment | None
    subject: str
    path: str
    finding: AlertVerdict


def all_signals(*, at: datetime) -> Iterator[Signal]:
    live = list(
        Deployment.objects.filter(
            is_stopped=False, is_retiring=False, is_retired=False, stable_revision__isnull=False
        ).select_related("team", "cluster", "stable_revision")
    )
    yield from _targets(at)
    yield from _of_workloads(live, at)
    yield from _nodes(live)
    yield from _clusters(live, at)
    yield from _budgets()
    yield from _costs(live, at)
    yield from _answers()


def _targets(at: datetime) -> Iterator[Signal]:
    rows = list(
        ServiceTarget.objects.filter(
            deployment__is_stopped=False,
            deployment__is_retired=False,
            counted_until__isnull=False,
        ).select_related("deployment__team")
    )
    evaluated = targets.evaluate(rows, at=at)
    for row in rows:
        label = metrics.KINDS[TargetMetric(row.metric)].label
        yield _of_deployment(
            slo_burn.KIND.code,
            row.deployment,
            f"target {row.pk}",
            f"{label} of {row.deployment}",
            slo_burn.decide(evaluated[row.pk]),
            page="targets",
        )


def _of_workloads(live: Sequence[Deployment], at: datetime) -> Iterator[Signal]:
    """Yield the signals on queues, memory and idle GPUs of the stable revision of each deployment."""
    keys = {}
    for row in live:
        number = row.stable_revision.number if row.stable_revision else 0
        keys[HourlyWorkload(row.cluster_id, row.namespace, f"{row.name}-r{number}")] = row
    workload_ids = hourly.find(list(keys)) if keys else {}
    ids = list(workload_ids.values())
    hour = hour_of(at)
    queues = pressure.queues(ids, since=at - _QUEUE)
    memory = pressure.memory(ids)
    held = pressure.count_held_gpus(ids)
    busy = pressure.busy(ids, start=hour - timedelta(hours=idle_gpus.HOURS), end=hour)
    for key, row in keys.items():
        pk = workload_ids.get(key, 0)
        queue = queues.get(pk)
        waiting = queue_depth.QueueFacts(*queue) if queue else None
        peak = memory.get(pk)
        used = gpu_memory.MemoryFacts(*peak) if peak else None
        hours = busy.get(pk)
        idle = idle_gpus.IdleFacts(held.get(pk, 0.0), *hours) if hours else None
        for kind, finding, page in (
            (queue_depth.KIND, queue_depth.decide(waiting), "deployment"),
            (gpu_memory.KIND, gpu_memory.decide(used), "deployment"),
            (idle_gpus.KIND, idle_gpus.decide(idle), "deployment"),
        ):
            title = f"{kind.label} of {row}"
            # Of this revision: what its successor does is another alert.
            subject_key = f"deployment {row.pk} {key.name}"
            yield _of_deployment(kind.code, row, subject_key, title, finding, page=page)


def _nodes(live: Sequence[Deployment]) -> Iterator[Signal]:
    """Yield signals on nodes with pods of any revision: what takes a candidate's pods may take stable's next."""
    noticed = {node.id: node for node in notices.list_nodes()}
    exposed = notices.list_exposed_deployments(noticed)
    for row in live:
        key = DeploymentKey(row.cluster_id, row.namespace, row.name)
        pods = exposed.get(key, notices.NOT_EXPOSED)
        facts = [
            node_notices.NoticedNode(
                noticed[pk].name,
                noticed[pk].capacity_type,
                noticed[pk].notices,
                replicas=count,
                all_replicas=pods.pods,
            )
            for pk, count in sorted(pods.on_nodes.items())
        ]
        for kind, finding in (
            (node_notices.RECLAIM, node_notices.decide_reclaim(facts)),
            (node_notices.FAULT, node_notices.decide_fault(facts)),
        ):
            title = f"{kind.label}: {row}"
            yield _of_deployment(
                kind.code, row, f"deployment {row.pk}", title, finding, page="deployment"
            )


def _clusters(live: Sequence[Deployment], at: datetime) -> Iterator[Signal]:
    """Yield signals on unreachable clusters, for each team that has deployments there."""
    known = {row.id: row for row in clusters.list_clusters()}
    pairs = {(row.cluster_id, row.team_id): row.team for row in live}
    for (cluster_id, _), team in sorted(pairs.items(), key=lambda pair: pair[0]):
        info = known[cluster_id]
        facts = cluster_unreachable.ClusterFacts(
            info.is_reachable, info.last_seen_at, info.last_error
        )
        yield Signal(
            kind=cluster_unreachable.KIND.code,
            key=f"cluster {cluster_id}",
            team=team,
            deployment=None,
            subject=f"Cluster {info.name} is unreachable",
            path=reverse("fleet"),
            finding=cluster_unreachable.decide(facts, at),
        )


def _budgets() -> Iterator[Signal]:
    crossed = months.read_crossed_this_month()
    for team in Team.objects.filter(monthly_budget_amount__gt=0):
        yield Signal(
            kind=budget.KIND.code,
            key="budget",
            team=team,
            deployment=None,
            subject=f"Budget of {team.slug}",
            path=reverse("costs"),
            finding=budget.decide(crossed.get((team.pk, team.monthly_budget_amount), ())),
        )


def _costs(live: Sequence[Deployment], at: datetime) -> Iterator[Signal]:
    """Yield signals on yesterday's cost (UTC) of each deployment and each team."""
    yesterday = at.astimezone(UTC).date() - timedelta(days=1)
    days = {
        (one.team_slug, one.deployment): one.anomaly
        for one in anomalies.recent().days
        if one.anomaly.day == yesterday
    }
    for row in live:
        finding = cost_anomaly.decide(days.get((row.team.slug, row.name)))
        key, title = f"deployment {row.pk}", f"Unusual cost of {row}"
        yield _of_deployment(
            cost_anomaly.KIND.code, row, key, title, finding, page="deployment-cost"
        )
    for team in Team.objects.all():
        yield Signal(
            kind=cost_anomaly.KIND.code,
            key="team",
            team=team,
            deployment=None,
            subject=f"Unusual cost of team {team.slug}",
            path=f"{reverse('costs')}?team={team.slug}&group=deployment&range=7d",
            finding=cost_anomaly.decide(days.get((team.slug, ""))),
        )


def _answers() -> Iterator[Signal]:
    rows = DeploymentHealth.objects.filter(
        is_on=True, deployment__is_stopped=False, deployment__is_retired=False
    ).select_related("deployment__team")
    for row in rows:
        days = {
            AnswerKind(name): DayVerdict.from_json(stored)
            for name, stored in row.answers.items()
            if name in set(AnswerKind)
        }
        failed = [
            f"{drift.KINDS[kind].label}: {day.message}"
            for kind, day in days.items()
            if day.verdict == HealthVerdict.FAILED
        ]
        if row.golden_verdict == HealthVerdict.FAILED:
            failed.insert(0, row.golden_message)
        verdicts = [row.golden_verdict, *(day.verdict for day in days.values())]
        facts = answers.AnswerFacts(tuple(failed), HealthVerdict.OK in verdicts)
        yield _of_deployment(
            answers.KIND.code,
            row.deployment,
            f"deployment {row.deployment_id}",
            f"Answers of {row.deployment}",
            answers.decide(facts),
            page="health",
        )


def _of_deployment(
    kind: str, deployment: Deployment, key: str, subject: str, finding: AlertVerdict, *, page: str
) -> Signal:
    return Signal(
        kind=kind,
        key=key[:80],
        team=deployment.team,
        deployment=deployment,
        subject=subject,
        path=reverse(page, args=(deployment.team.slug, deployment.name)),
        finding=finding,
    )
