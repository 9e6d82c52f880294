"""Each trigger on Prometheus that an engine may have: what its server reports at rest and under load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Series = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trigger:
    """`scaling`: what the request says. `gauges` are read as they are, `counters` by how much they rose; `{pod}`
    and `{exported}` in their names are the labels of a pod of the deployment, `{service}` those of its Service.
    """

    name: str
    engines: tuple[str, ...]
    scaling: Mapping[str, Any]
    gauges: Series = field(default_factory=dict)
    counters: Series = field(default_factory=dict)
    # A queue has a length per replica; other values are compared as they are, so only a limit ends their growth.
    replicas: int = 2

    @property
    def most_replicas(self) -> int:
        return 5 if self.replicas > 2 else 2


def _histogram(name: str, labels: str = "") -> Series:
    """Of 100 observations 90 took up to 0.5 s and all up to 2 s: the 95th percentile is 1.25 s."""
    counts = (("0.5", 90.0), ("2.0", 100.0), ("+Inf", 100.0))
    return {f'{name}_bucket{{{{{{pod}}{labels},le="{le}"}}}}': count for le, count in counts}


def _mean(name: str) -> Series:
    """0.4 s on average."""
    return {f"{name}_sum{{{{{{pod}}}}}}": 40.0, f"{name}_count{{{{{{pod}}}}}}": 100.0}


_TRITON = ("triton", "kserve-triton")
_VLLM = ("kserve-vllm", "triton-vllm")
_SGLANG = ("kserve-sglang",)
_TENSORRT = ("kserve-tensorrt-llm",)
_ALL = (*_TRITON, *_VLLM, *_SGLANG, *_TENSORRT)
_WAITING = {"metric": "queue", "target": 4}
_MEAN = {"metric": "latency", "target": 200}
_MEAN_LIMIT = {"metric": "gpu", "max_latency_ms": 200}
_CACHE = {"metric": "kv-cache", "target": 50}
_FIRST = {"metric": "first-token", "target": 1000}
_GPU = {"metric": "gpu", "target": 50}
_TRITON_MEAN = {
    "nv_inference_request_duration_us{{{pod}}}": 400_000.0,
    "nv_inference_request_success{{{pod}}}": 1.0,
}
_VLLM_MEAN = _mean("vllm:e2e_request_latency_seconds")
_SGLANG_MEAN = _mean("sglang:e2e_request_latency_seconds")
_TENSORRT_MEAN = _mean("e2e_request_latency_seconds")

TRIGGERS = (
    Trigger("queue", _TRITON, _WAITING, {"nv_inference_pending_request_count{{{pod}}}": 12}, {}, 3),
    # Two copies of a model in a pod wait together.
    Trigger(
        "queue",
        ("kserve-vllm",),
        _WAITING,
        {
            'vllm:num_requests_waiting{{{pod},engine="0"}}': 5,
            'vllm:num_requests_waiting{{{pod},engine="1"}}': 7,
        },
        replicas=3,
    ),
    Trigger("queue", _SGLANG, _WAITING, {"sglang:num_queue_reqs{{{pod}}}": 12}, replicas=3),
    Trigger("mean", _TRITON, _MEAN, counters=_TRITON_MEAN),
    Trigger("mean", _VLLM, _MEAN, counters=_VLLM_MEAN),
    Trigger("mean", _SGLANG, _MEAN, counters=_SGLANG_MEAN),
    Trigger("mean", _TENSORRT, _MEAN, counters=_TENSORRT_MEAN),
    Trigger("mean-later", _TENSORRT, _MEAN, counters=_mean("trtllm_e2e_request_latency_seconds")),
    Trigger("limit", _TRITON, _MEAN_LIMIT, counters=_TRITON_MEAN),
    Trigger("limit", _VLLM, _MEAN_LIMIT, counters=_VLLM_MEAN),
    Trigger("limit", _SGLANG, _MEAN_LIMIT, counters=_SGLANG_MEAN),
    Trigger("limit", _TENSORRT, _MEAN_LIMIT, counters=_TENSORRT_MEAN),
    # Of a pod with two copies the fullest cache counts.
    Trigger(
        "cache",
        ("kserve-vllm",),
        _CACHE,
        {
            'vllm:kv_cache_usage_perc{{{pod},engine="0"}}': 0.1,
            'vllm:kv_cache_usage_perc{{{pod},engine="1"}}': 0.9,
        },
    ),
    # Before vLLM 0.11.
    Trigger("cache-old", ("kserve-vllm",), _CACHE, {"vllm:gpu_cache_usage_perc{{{pod}}}": 0.9}),
    Trigger("cache", _SGLANG, _CACHE, {"sglang:token_usage{{{pod}}}": 0.9}),
    Trigger("first", _VLLM, _FIRST, counters=_histogram("vllm:time_to_first_token_seconds")),
    Trigger("first", _SGLANG, _FIRST, counters=_histogram("sglang:time_to_first_token_seconds")),
    Trigger("first", _TENSORRT, _FIRST, counters=_histogram("time_to_first_token_seconds")),
    Trigger(
        "first-later", _TENSORRT, _FIRST, counters=_histogram("trtllm_time_to_first_token_seconds")
    ),
    Trigger(
        "gateway",
        _ALL,
        {"metric": "gateway-latency", "target": 50},
        counters={
            'istio_request_duration_milliseconds_bucket{{{service},le="100"}}': 100,
            'istio_request_duration_milliseconds_bucket{{{service},le="+Inf"}}': 100,
        },
    ),
    # As the pods of dcgm-exporter are relabelled by default, and with honorLabels.
    Trigger("gpu", _ALL, _GPU, {"DCGM_FI_DEV_GPU_UTIL{{{exported}}}": 97}),
    Trigger("gpu-honor", _TRITON, _GPU, {"DCGM_FI_DEV_GPU_UTIL{{{pod}}}": 97}),
    Trigger(
        "memory",
        _TRITON,
        {"metric": "queue", "max_gpu_memory_percent": 50},
        {"DCGM_FI_DEV_FB_USED{{{exported}}}": 95, "DCGM_FI_DEV_FB_FREE{{{exported}}}": 5},
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A trigger of one engine, as a deployment of its own."""

    trigger: Trigger
    engine: str

    @property
    def deployment(self) -> str:
        # Short: KServe makes one DNS label of it, its suffixes and the namespace.
        engine = self.engine.replace("kserve", "k").replace("tensorrt-llm", "trt")
        return f"{engine}-{self.trigger.name}"

    @property
    def target(self) -> str:
        is_plain = self.engine.startswith("triton")
        return f"{self.deployment}-r1" if is_plain else f"{self.deployment}-r1-predictor"

    def named(self, series: Series, namespace: str) -> dict[str, float]:
        pod = f'namespace="{namespace}",pod="{self.target}-abc"'
        exporter = 'namespace="dcgm",pod="dcgm-0"'
        labels = {
            "pod": pod,
            "exported": f"{exporter},exported_{pod.replace(',', ',exported_')}",
            "service": f'reporter="source",destination_service_namespace="{namespace}",'
            f'destination_service_name="{self.target}"',
        }
        return {name.format(**labels): value for name, value in series.items()}


def cases() -> Iterator[Case]:
    for trigger in TRIGGERS:
        for engine in trigger.engines:
            yield Case(trigger, engine)


def for_all(cases: list[Case], of: Callable[[Trigger], Series], namespace: str) -> dict[str, float]:
    return {
        name: value
        for case in cases
        for name, value in case.named(of(case.trigger), namespace).items()
    }
