"""Read model servers through the Prometheus of their cluster: a few queries, however many pods there are."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Max, Q

from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.domain.prometheus_series import Series, SeriesResult
from fleet.clusters.services import prometheus
from fleet.models import Cluster, MetricSample, ScrapeReading
from fleet.telemetry.domain import direct_pods, metrics_page, scraped_pages
from fleet.telemetry.domain.counters import PodReading
from fleet.telemetry.domain.direct_pods import DirectPods
from fleet.telemetry.domain.language_metrics import NotLanguageMetrics
from fleet.telemetry.domain.scraped_pages import PodName, ScrapedPage
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics
from fleet.telemetry.services import prompt_readings
from fleet.telemetry.services.targets import Target
from portal.core import clock

logger = logging.getLogger(__name__)

# Each third poll: as often as the ServiceMonitors of deployments have pods scraped.
_EVERY: Final = timedelta(seconds=14)
_AFTER_A_PROBLEM: Final = timedelta(seconds=60)
# Between the clocks of the portal and of Prometheus.
_MOST_AHEAD: Final = timedelta(seconds=10)
_MOST_BEHIND: Final = timedelta(minutes=4)


@dataclass(frozen=True, slots=True)
class ClusterTargets:
    """The targets of one cluster to query from its Prometheus. `prompt` more are read directly at each poll."""

    cluster: Cluster
    targets: Sequence[Target]
    prompt: int


@dataclass(frozen=True, slots=True)
class Choice:
    direct: list[Target] = field(default_factory=list)
    scraped: list[ClusterTargets] = field(default_factory=list)


def choose(targets: Sequence[Target]) -> Choice:
    """Choose how to read the pods. Directly are read the pods of clusters without a Prometheus, those that
    Prometheus lacked when it was last queried, and those of prompt workloads.
    """
    by_cluster: dict[int, list[Target]] = defaultdict(list)
    choice = Choice()
    for target in targets:
        if target.cluster.prometheus_url:
            by_cluster[target.cluster.pk].append(target)
        else:
            choice.direct.append(target)
    if not by_cluster:
        return choice
    workloads = prompt_readings.list_workloads(by_cluster.keys())
    rows = ScrapeReading.objects.filter(cluster__in=by_cluster)
    listed = {pk: frozenset(ids) for pk, ids in rows.values_list("cluster", "direct_pods")}
    for pk, of_cluster in by_cluster.items():
        prompt, others = direct_pods.choose_prompt(
            of_cluster, is_prompt=lambda target: target.workload_key in workloads
        )
        known = listed.get(pk, frozenset())
        choice.direct.extend(prompt)
        choice.direct.extend(target for target in others if target.pod_id in known)
        choice.scraped.append(ClusterTargets(of_cluster[0].cluster, others, len(prompt)))
    return choice


def read(scraped: Sequence[ClusterTargets]) -> list[tuple[Target, PodReading]]:
    """Query each Prometheus whose turn it is and record what it had. Returns the readings that are new: a pod that was not
    scraped again has none.
    """
    due = [one for one in scraped if one.targets and _claim(one.cluster)]
    queries = {
        one.cluster: scraped_pages.queries({target.namespace for target in one.targets})
        for one in due
    }
    results = prometheus.query_series(queries)
    return [
        reading for one in due for reading in _of_cluster(one, results[one.cluster], clock.now())
    ]


def _claim(cluster: Cluster) -> bool:
    """Whether it is due, and this worker is the one that queries it."""
    now = clock.now()
    ScrapeReading.objects.bulk_create(
        [ScrapeReading(cluster=cluster, next_at=now)], ignore_conflicts=True
    )
    # Further ahead than it is ever set: the clock was set back.
    is_due = Q(next_at__lte=now) | Q(next_at__gt=now + 2 * _AFTER_A_PROBLEM)
    return bool(ScrapeReading.objects.filter(is_due, cluster=cluster).update(next_at=now + _EVERY))


def _of_cluster(
    one: ClusterTargets, results: Sequence[SeriesResult] | PrometheusError, now: datetime
) -> list[tuple[Target, PodReading]]:
    series, problem = _merged(results)
    names = {(target.namespace, target.name) for target in one.targets}
    pages = {} if problem else scraped_pages.by_pod(series, names)
    problem = problem or _clock_problem(pages, now)
    if problem:
        logger.info("serving metrics of %s: %s", one.cluster.name, problem)
        choice: DirectPods[Target] = direct_pods.without_answer(one.targets, prompt=one.prompt)
        _record(one.cluster, choice, problem=problem, next_at=now + _AFTER_A_PROBLEM)
        return []
    mine = {
        target: tuple(page for page in found if target.created_at <= _at(page) <= now + _MOST_AHEAD)
        for target in one.targets
        if (found := pages.get((target.namespace, target.name)))
    }
    missing = [target for target in one.targets if not mine.get(target)]
    choice = direct_pods.after_answer(missing, prompt=one.prompt)
    _record(one.cluster, choice, problem="", read_at=now, pods=len(one.targets) - len(missing))
    return _new_readings(one.cluster, mine, now)


def _merged(
    results: Sequence[SeriesResult] | PrometheusError,
) -> tuple[list[Series], str]:
    """Merge the pages of all families, all or nothing: a pod of which one family is missing would look as if its
    server had been restarted.
    """
    if isinstance(results, PrometheusError):
        return [], results.message
    for warning in (warning for result in results for warning in result.warnings):
        return [], f"Prometheus warns that data may be missing: {warning}"
    return [one for result in results for one in result.series], ""


def _clock_problem(pages: Mapping[PodName, Sequence[ScrapedPage]], now: datetime) -> str:
    """Describe the difference between the clocks of Prometheus and the portal, judged by the median pod: one pod
    that states its own times is not the clock of Prometheus. Empty if there is no problem.
    """
    times = sorted(_at(found[0]) for found in pages.values())
    middle = times[len(times) // 2] if times else now
    if middle > now + _MOST_AHEAD:
        ahead = (middle - now).total_seconds()
        return f"the clock of Prometheus is {ahead:.0f} s ahead of the portal's"
    if middle < now - _MOST_BEHIND:
        behind = (now - middle).total_seconds()
        return f"its newest samples are {behind:.0f} s old by the portal's clock"
    return ""


def _record(cluster: Cluster, choice: DirectPods[Target], **changed: object) -> None:
    ScrapeReading.objects.filter(cluster=cluster).update(
        direct_pods=[target.pod_id for target in choice.direct], unread=choice.unread, **changed
    )


def _new_readings(
    cluster: Cluster, pages: Mapping[Target, Sequence[ScrapedPage]], now: datetime
) -> list[tuple[Target, PodReading]]:
    stored = dict(
        MetricSample.objects.filter(
            pod__cluster=cluster, at__gte=now - 2 * _MOST_BEHIND, at__lte=now + _MOST_AHEAD
        )
        .values_list("pod")
        .annotate(Max("at"))
        .order_by()
    )
    readings = ((target, _read(target, found, stored)) for target, found in pages.items())
    return [(target, reading) for target, reading in readings if reading is not None]


def _read(
    target: Target, pages: Sequence[ScrapedPage], stored: Mapping[int, datetime]
) -> PodReading | None:
    """Read the newest page that is one of a model server: a sidecar may be scraped too. None if it is stored
    already, or if there is none.
    """
    for page in pages:
        if target.pod_id in stored and _at(page) <= stored[target.pod_id]:
            return None
        try:
            return metrics_page.read(page.text, models=target.models, at=_at(page))
        except (NotTritonMetrics, NotLanguageMetrics) as error:
            logger.debug("no metrics of pod %s/%s: %s", target.namespace, target.name, error)
    return None


def _at(page: ScrapedPage) -> datetime:
    return datetime.fromtimestamp(page.at, UTC)
