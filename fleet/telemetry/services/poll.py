"""Read the counters of the model servers in managed pods, and store them: directly, in parallel, or through the Prometheus
of their cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from django.db.models import Q

from fleet.kube.domain.errors import ClusterError
from fleet.models import MetricSample, Workload
from fleet.observation.services import subscribers
from fleet.telemetry.domain import histograms, metrics_page
from fleet.telemetry.domain.counters import PodReading
from fleet.telemetry.domain.language_metrics import NotLanguageMetrics
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics
from fleet.telemetry.services import rollups, scrapes
from fleet.telemetry.services.targets import Target, list_targets
from portal.core import clock
from portal.core.wakeups import wake

logger = logging.getLogger(__name__)

_THREADS = 16
_SECONDS = 3.0


def poll_soon(*, cluster_id: int, namespace: str, names: Collection[str]) -> None:
    """Read the pods of these workloads soon, ahead of the periodic poll."""
    rows = Workload.objects.filter(cluster_id=cluster_id, namespace=namespace, name__in=names)
    workload_ids = list(rows.values_list("pk", flat=True))
    if workload_ids:
        wake("fleet.poll_workloads", *workload_ids)


def poll(*, workload_ids: Collection[int] | None = None) -> int:
    """Read every running pod once, those of a cluster with a Prometheus through that; return how many readings were
    stored. Pods of `workload_ids` are all read directly.

    A pod that does not respond leaves a gap, which later counts as "not known".
    """
    targets = list_targets(workload_ids)
    if workload_ids is not None:
        return _store(read_all(targets))
    choice = scrapes.choose(targets)
    # First, so that a Prometheus that hangs delays no pod.
    stored = _store(read_all(choice.direct))
    return stored + _store(scrapes.read(choice.scraped))


def read_all(targets: Sequence[Target]) -> list[tuple[Target, PodReading]]:
    """Read the targets concurrently, and return those that answered with their readings."""
    if not targets:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(targets))) as pool:
        readings = pool.map(_read, targets)
        return [(target, read) for target, read in zip(targets, readings, strict=True) if read]


def _store(answered: list[tuple[Target, PodReading]]) -> int:
    if not answered:
        return 0
    MetricSample.objects.bulk_create(
        [_sample(target.pod_id, reading) for target, reading in answered]
    )
    _keep_peaks(answered)
    subscribers.notify_read({target.cluster.pk for target, _ in answered})
    rollups.roll_up(workload_ids={target.workload_id for target, _ in answered}, at=clock.now())
    return len(answered)


def _keep_peaks(answered: list[tuple[Target, PodReading]]) -> None:
    peaks: dict[int, int] = {}
    for target, reading in answered:
        if target.has_whole_gpus and target.is_of_workload and reading.gpu_memory_used_mib:
            peak = peaks.get(target.workload_id, 0)
            peaks[target.workload_id] = max(peak, reading.gpu_memory_used_mib)
    for workload_id, mib in peaks.items():
        is_higher = Q(gpu_memory_peak_mib=None) | Q(gpu_memory_peak_mib__lt=mib)
        Workload.objects.filter(is_higher, pk=workload_id).update(gpu_memory_peak_mib=mib)


def _read(target: Target) -> PodReading | None:
    try:
        text = target.client.proxy_get(
            target.namespace,
            target.name,
            target.port,
            target.path.removeprefix("/"),
            seconds=_SECONDS,
        )
        return metrics_page.read(text, models=target.models, at=clock.now())
    except (ClusterError, NotTritonMetrics, NotLanguageMetrics) as error:
        logger.debug("no metrics from pod %s/%s: %s", target.namespace, target.name, error)
        return None


def _sample(pod_id: int, reading: PodReading) -> MetricSample:
    return MetricSample(
        pod_id=pod_id,
        at=reading.at,
        gpu_utilisation=reading.gpu_utilisation,
        pending_requests=reading.pending_requests,
        request_p95_us=reading.request_p95_us,
        running_requests=reading.running_requests,
        kv_cache_usage=reading.kv_cache_usage,
        first_token_times=histograms.to_json(reading.first_token_times),
        **asdict(reading.counters),
    )
