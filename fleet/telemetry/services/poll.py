"""Read the counters of the model server in each managed pod, in parallel, and store them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from django.db.models import Q

from fleet.gpus.domain import shares
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import MetricSample, Pod, Workload
from fleet.observation.services import subscribers
from fleet.telemetry.domain import histograms, metrics_page
from fleet.telemetry.domain.counters import Reading
from fleet.telemetry.domain.language_metrics import NotLanguageMetrics
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics
from fleet.telemetry.services import rollups
from portal.core import clock
from portal.core.wakeups import wake

logger = logging.getLogger(__name__)

_THREADS = 16
_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Target:
    pod_id: int
    cluster_id: int
    workload_id: int
    namespace: str
    name: str
    port: int
    path: str
    models: tuple[str, ...]
    has_whole_gpus: bool
    client: KubeClient


def poll_soon(*, cluster_id: int, namespace: str, names: Collection[str]) -> None:
    """Read the pods of these workloads soon, ahead of the periodic poll."""
    rows = Workload.objects.filter(cluster_id=cluster_id, namespace=namespace, name__in=names)
    workload_ids = list(rows.values_list("pk", flat=True))
    if workload_ids:
        wake("fleet.poll_workloads", *workload_ids)


def poll(*, workload_ids: Collection[int] | None = None) -> int:
    """Read every running pod of a workload once; return how many responded.

    A pod that does not respond leaves a gap, which later counts as "not known".
    """
    targets = _targets(workload_ids)
    if not targets:
        return 0
    answered = read_all(targets)
    MetricSample.objects.bulk_create(
        [_sample(target.pod_id, reading) for target, reading in answered]
    )
    _keep_peaks(answered)
    subscribers.notify_read({target.cluster_id for target, _ in answered})
    rollups.roll_up(workload_ids={target.workload_id for target, _ in answered}, at=clock.now())
    return len(answered)


def read_all(targets: Sequence[_Target]) -> list[tuple[_Target, Reading]]:
    """Those that answered, with what they said."""
    with ThreadPoolExecutor(min(_THREADS, len(targets))) as pool:
        readings = pool.map(_read, targets)
        return [(target, read) for target, read in zip(targets, readings, strict=True) if read]


def _targets(workload_ids: Collection[int] | None) -> list[_Target]:
    pods = Pod.objects.filter(
        phase="Running", gone_at=None, ended_at=None, workload__isnull=False
    ).select_related("workload", "cluster", "node")
    if workload_ids is not None:
        pods = pods.filter(workload_id__in=workload_ids)
    reachable = pods.exclude(cluster__is_reachable=False)
    targets = []
    by_cluster: dict[int, KubeClient | None] = {}
    for pod in reachable:
        if pod.cluster_id not in by_cluster:
            by_cluster[pod.cluster_id] = _client(pod)
        client = by_cluster[pod.cluster_id]
        if client is not None and pod.workload is not None:
            targets.append(
                _Target(
                    pod_id=pod.pk,
                    cluster_id=pod.cluster_id,
                    workload_id=pod.workload.pk,
                    namespace=pod.namespace,
                    name=pod.name,
                    port=pod.workload.metrics_port,
                    path=pod.workload.metrics_path,
                    models=tuple(pod.workload.triton_models),
                    has_whole_gpus=_has_whole_gpus(pod),
                    client=client,
                )
            )
    return targets


def _has_whole_gpus(pod: Pod) -> bool:
    """Whether all memory used on its GPUs is its own."""
    if pod.node is None or pod.gpu_resource != shares.WHOLE or not pod.gpu_units:
        return False
    gpus = shares.gpus_of(pod.node.labels, pod.node.allocatable)
    return gpus.replicas == 1 and not gpus.single_profile


def _keep_peaks(answered: list[tuple[_Target, Reading]]) -> None:
    peaks: dict[int, int] = {}
    for target, reading in answered:
        if target.has_whole_gpus and reading.gpu_memory_used_mib:
            peak = peaks.get(target.workload_id, 0)
            peaks[target.workload_id] = max(peak, reading.gpu_memory_used_mib)
    for workload_id, mib in peaks.items():
        is_higher = Q(gpu_memory_peak_mib=None) | Q(gpu_memory_peak_mib__lt=mib)
        Workload.objects.filter(is_higher, pk=workload_id).update(gpu_memory_peak_mib=mib)


def _client(pod: Pod) -> KubeClient | None:
    try:
        return clients.connect(clients.connection_of(pod.cluster))
    except ClusterError as error:
        logger.warning("no metrics from cluster %s: %s", pod.cluster_id, error.message)
        return None


def _read(target: _Target) -> Reading | None:
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


def _sample(pod_id: int, reading: Reading) -> MetricSample:
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
