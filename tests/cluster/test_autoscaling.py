"""Autoscalers as the portal writes them, followed by the real HPA controller: a metric moves in a real
Prometheus, and the number of replicas moves with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.spec.domain import serving_spec
from fleet.kube.services import objects
from tests.cluster import external_metrics
from tests.cluster.external_metrics import ExternalMetrics
from tests.cluster.kubectl import Kubectl
from tests.cluster.scaled import TARGET, revision_scaled_by, wait_for_replicas
from tests.fixtures.prometheus import RealPrometheus

_QUEUE = "nv_inference_pending_request_count"
_WAITING = "vllm:num_requests_waiting"


@pytest.fixture
def adapter(
    admin: Kubectl, tmp_path: Path, prometheus: RealPrometheus
) -> Iterator[ExternalMetrics]:
    with external_metrics.serving(admin, tmp_path, prometheus.value) as metrics:
        yield metrics


def _keda_hpa(scaled: Manifest, adapter: ExternalMetrics) -> Manifest:
    """What KEDA does with triggers on Prometheus: an external metric for each, and its query behind
    it (KEDA 2.18, pkg/scaling and pkg/scalers/prometheus_scaler.go).
    """
    spec, metrics = scaled["spec"], []
    for number, trigger in enumerate(spec["triggers"]):
        name = f"s{number}-prometheus"
        adapter.queries[name] = trigger["metadata"]["query"]
        key = "averageValue" if trigger["metricType"] == "AverageValue" else "value"
        target = {"type": trigger["metricType"], key: trigger["metadata"]["threshold"]}
        metrics.append(
            {"type": "External", "external": {"metric": {"name": name}, "target": target}}
        )
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": f"keda-hpa-{scaled['metadata']['name']}",
            "namespace": scaled["metadata"]["namespace"],
        },
        "spec": {
            "scaleTargetRef": spec["scaleTargetRef"],
            "minReplicas": spec["minReplicaCount"],
            "maxReplicas": spec["maxReplicaCount"],
            "metrics": metrics,
            "behavior": behavior,
        },
    }


@pytest.mark.parametrize(
    ("engine", "name"), [(serving_spec.TRITON, _QUEUE), (serving_spec.TRITON_VLLM, _WAITING)]
)
def test_an_hpa_adds_a_replica_for_every_five_waiting_requests_and_removes_them_again(
    engine: str,
    name: str,
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    prometheus: RealPrometheus,
    adapter: ExternalMetrics,
    journey: Callable[[str], None],
) -> None:
    series = f'{name}{{namespace="{context.namespace}",service="{TARGET}",pod="%s"}}'
    prometheus.show({series % "a": 0, series % "b": 0})
    scaling = {"kind": "hpa", "metric": "queue", "target": 5}
    objects.apply(cluster_id=cluster_id, manifests=revision_scaled_by(context, scaling, engine))
    wait_for_replicas(admin, context.namespace, 1)

    prometheus.show({series % "a": 9, series % "b": 3})
    wait_for_replicas(admin, context.namespace, 3)
    prometheus.show({series % "a": 0, series % "b": 0})
    wait_for_replicas(admin, context.namespace, 1)

    journey(f"HPA on the external metric {name}: a queue of 12 made 3 replicas, an empty one 1")


def _rising(prometheus: RealPrometheus, series: Mapping[str, float]) -> None:
    """Counters that rose by these amounts, as two scrapes saw them."""
    prometheus.show(dict.fromkeys(series, 1))
    prometheus.show({name: 1 + rise for name, rise in series.items()})


def _gauges(prometheus: RealPrometheus, series: Mapping[str, float]) -> None:
    prometheus.show(dict(series))


_POD = f'namespace="%(ns)s",pod="{TARGET}-abc"'
_EXPORTED = f'namespace="dcgm",pod="dcgm-0",exported_namespace="%(ns)s",exported_pod="{TARGET}-abc"'
_LATENCY = {
    f"nv_inference_request_duration_us{{{_POD}}}": 400_000.0,
    f"nv_inference_request_success{{{_POD}}}": 1.0,
}
_GATEWAY = (
    f'reporter="source",destination_service_namespace="%(ns)s",destination_service_name="{TARGET}"'
)


_FIRST_TOKENS = {
    f'vllm:time_to_first_token_seconds_bucket{{{_POD},engine="{engine}",le="{le}"}}': count
    for engine in (0, 1)
    for le, count in (("0.5", 90.0), ("2.0", 100.0), ("+Inf", 100.0))
}


@pytest.mark.parametrize(
    ("scaling", "move", "series", "replicas"),
    [
        ({"metric": "queue", "target": 4}, _gauges, {f"{_QUEUE}{{{_POD}}}": 12.0}, 3),
        # 400 ms on average.
        ({"metric": "latency", "target": 200}, _rising, _LATENCY, 2),
        (
            {"metric": "gateway-latency", "target": 50},
            _rising,
            {
                f'istio_request_duration_milliseconds_bucket{{{_GATEWAY},le="100"}}': 100.0,
                f'istio_request_duration_milliseconds_bucket{{{_GATEWAY},le="+Inf"}}': 100.0,
            },
            2,
        ),
        # As dcgm-exporter's pods are relabelled by default, and with honorLabels.
        (
            {"metric": "gpu", "target": 50},
            _gauges,
            {f"DCGM_FI_DEV_GPU_UTIL{{{_EXPORTED}}}": 97.0},
            2,
        ),
        ({"metric": "gpu", "target": 50}, _gauges, {f"DCGM_FI_DEV_GPU_UTIL{{{_POD}}}": 97.0}, 2),
        ({"metric": "queue", "max_latency_ms": 200}, _rising, _LATENCY, 2),
        (
            {"metric": "queue", "max_gpu_memory_percent": 50},
            _gauges,
            {
                f"DCGM_FI_DEV_FB_USED{{{_EXPORTED}}}": 95.0,
                f"DCGM_FI_DEV_FB_FREE{{{_EXPORTED}}}": 5.0,
            },
            2,
        ),
        # Two copies of a model in the pod: the fullest cache counts.
        (
            {"metric": "kv-cache", "target": 50},
            _gauges,
            {
                f'vllm:kv_cache_usage_perc{{{_POD},engine="0"}}': 0.1,
                f'vllm:kv_cache_usage_perc{{{_POD},engine="1"}}': 0.9,
            },
            2,
        ),
        (
            {"metric": "kv-cache", "target": 50},
            _gauges,
            {f"vllm:gpu_cache_usage_perc{{{_POD}}}": 0.9},
            2,
        ),
        # Of 200 first tokens 90 % came within 0.5 s and all within 2 s: the 95th percentile is 1.25 s.
        ({"metric": "first-token", "target": 1000}, _rising, _FIRST_TOKENS, 2),
        (
            {"metric": "queue", "target": 4},
            _gauges,
            {
                f'{_WAITING}{{{_POD},engine="0"}}': 5.0,
                f'{_WAITING}{{{_POD},engine="1"}}': 7.0,
            },
            3,
        ),
    ],
    ids=[
        *("queue", "latency", "gateway-latency", "gpu", "gpu-honor", "latency-limit", "gpu-memory"),
        *("kv-cache", "kv-cache-before-0.11", "first-token", "waiting"),
    ],
)
def test_each_trigger_of_keda_on_prometheus_adds_replicas_when_its_metric_rises(
    scaling: Mapping[str, Any],
    move: Callable[[RealPrometheus, Mapping[str, float]], None],
    series: Mapping[str, float],
    replicas: int,
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    prometheus: RealPrometheus,
    adapter: ExternalMetrics,
    journey: Callable[[str], None],
) -> None:
    named = {name % {"ns": context.namespace}: value for name, value in series.items()}
    context = replace(context, prometheus_url=prometheus.url)
    is_language_model = any(name.startswith("vllm:") for name in series)
    engine = serving_spec.TRITON_VLLM if is_language_model else serving_spec.TRITON
    manifests = revision_scaled_by(context, {"kind": "keda", **scaling}, engine)
    [scaled] = [manifest for manifest in manifests if manifest["kind"] == "ScaledObject"]
    objects.apply(
        cluster_id=cluster_id,
        manifests=[manifest for manifest in manifests if manifest is not scaled],
    )
    admin.apply([_keda_hpa(scaled, adapter)])
    wait_for_replicas(admin, context.namespace, 1)

    move(prometheus, named)

    wait_for_replicas(admin, context.namespace, replicas)
    journey(f"HPA as KEDA makes it: {', '.join(t['name'] for t in scaled['spec']['triggers'])}")
