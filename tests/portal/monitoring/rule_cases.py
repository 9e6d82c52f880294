"""For each rule: series with which it fires, and the nearest ones with which it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.alerts.domain.kinds import gpu_memory, idle_gpus, queue_depth, slo_burn
from deployments.spec.domain import engines
from deployments.states import TargetMetric
from portal.monitoring.rules.targets import TargetFacts
from tests.portal.monitoring.promtool import Case, Series

POD: Final = "detector-r12-predictor-7d9f6c5b8-x2k4p"
_OTHER_POD: Final = "detector-r12-predictor-7d9f6c5b8-abcde"
_OF: Final = {"namespace": "vision", "deployment": "detector", "revision": "r12"}
_WHAT: Final = "vision/detector r12"


def _in(pod: str = POD, **labels: str) -> str:
    named = {"namespace": "vision", "pod": pod, **labels}
    return "{" + ",".join(f'{key}="{value}"' for key, value in named.items()) + "}"


def _triton(failed: str, served: str, pod: str = POD) -> Series:
    where = _in(pod, model="detector", version="1")
    return {
        f"nv_inference_request_failure{where}": failed,
        f"nv_inference_request_success{where}": served,
    }


def _times(queue: int, whole: int, served: int = 10) -> Series:
    """Microseconds and requests a minute."""
    where = _in(model="detector")
    return {
        f"nv_inference_queue_duration_us{where}": f"0+{queue}x30",
        f"nv_inference_request_duration_us{where}": f"0+{whole}x30",
        f"nv_inference_request_success{where}": f"0+{served}x30",
    }


def _waiting(metric: str, first: str, second: str) -> Series:
    return {f"{metric}{_in()}": first, f"{metric}{_in(_OTHER_POD)}": second}


def _queue(alert: str, metric: str) -> list[Case]:
    message = f"At least 10 requests wait in each replica. {queue_depth.KIND.advice}"
    return [
        Case(
            alert,
            _waiting(metric, "10x30", "40x30"),
            labels=_OF,
            says=(f"{_WHAT} has waiting requests in every replica", message),
        ),
        # One replica has room.
        Case(alert, _waiting(metric, "9x30", "40x30")),
        # Not for five minutes.
        Case(alert, _waiting(metric, "0x26 10x4", "40x30")),
        # Not a pod of the portal.
        Case(alert, {f"{metric}{_in('triton-0')}": "40x30"}),
    ]


TRITON: Final = [
    Case(
        "SlipwayTritonErrors",
        _triton("0+2x30", "0+18x30"),
        labels=_OF,
        says=(
            f"{_WHAT} answers with errors",
            "10% of its requests failed in 5 minutes. Abort a running canary or roll back; the log of the pod has"
            " Triton's message.",
        ),
    ),
    # Exactly the limit; too few failures; nothing served; no pod of the portal.
    Case("SlipwayTritonErrors", _triton("0+5x30", "0+95x30")),
    Case("SlipwayTritonErrors", _triton("0 0 1 1 2 2 3 3 4 4 5 5 6x20", "0x30"), at="13m"),
    Case("SlipwayTritonErrors", _triton("0x30", "0x30")),
    Case("SlipwayTritonErrors", _triton("0+2x30", "0+18x30", pod="web-7d9f6c5b8-x2k4p")),
    *_queue("SlipwayTritonQueue", "nv_inference_pending_request_count"),
    Case(
        "SlipwayTritonQueueTime",
        _times(3_000_000, 4_000_000),
        labels=_OF,
        says=(
            f"{_WHAT} makes requests wait longer than it processes them",
            f"Requests spend 75% of their time in the queue, more than 0.1 s each. {queue_depth.KIND.advice}",
        ),
    ),
    # Half of the time; most of it, but short; no traffic.
    Case("SlipwayTritonQueueTime", _times(2_000_000, 4_000_000)),
    Case("SlipwayTritonQueueTime", _times(900_000, 1_000_000)),
    Case("SlipwayTritonQueueTime", _times(0, 0, 0)),
]


def _vllm(http: str, broken: str, served: str, *, handler: str = "/v1/completions") -> Series:
    success = "vllm:request_success_total"
    return {
        f"http_requests_total{_in(handler=handler, status='5xx')}": http,
        f"{success}{_in(finished_reason='error')}": broken,
        f"{success}{_in(finished_reason='abort')}": "0+1000x30",
        f"{success}{_in(finished_reason='stop')}": served,
    }


def _queued(slow: int) -> Series:
    """Of 100 requests a minute, so many wait from 5 to 10 seconds."""
    name = "vllm:request_queue_time_seconds_bucket"
    return {
        f"{name}{_in(le='5.0')}": f"0+{100 - slow}x30",
        f"{name}{_in(le='10.0')}": "0+100x30",
        f"{name}{_in(le='+Inf')}": "0+100x30",
    }


_VLLM_SAYS: Final = (
    f"{_WHAT} answers with errors",
    "10% of its requests failed in 5 minutes. Abort a running canary or roll back; the log of the pod has vLLM's"
    " message.",
)
_CACHE_SAYS: Final = (
    f"{_WHAT} has a full KV cache",
    "96% of the KV cache is used: requests wait, or are preempted and computed again. Request more replicas, a GPU"
    " with more memory or a shorter context.",
)
VLLM: Final = [
    # The larger of both counts: of refused requests and of broken streams.
    Case("SlipwayVllmErrors", _vllm("0+2x30", "0+1x30", "0+18x30"), labels=_OF, says=_VLLM_SAYS),
    Case("SlipwayVllmErrors", _vllm("0+1x30", "0+2x30", "0+18x30"), labels=_OF, says=_VLLM_SAYS),
    Case("SlipwayVllmErrors", _vllm("0+5x30", "0x30", "0+95x30")),
    # Not of the API.
    Case("SlipwayVllmErrors", _vllm("0+50x30", "0x30", "0+18x30", handler="/metrics")),
    *_queue("SlipwayVllmQueue", "vllm:num_requests_waiting"),
    Case(
        "SlipwayVllmQueueTime",
        _queued(10),
        labels=_OF,
        says=(
            f"{_WHAT} makes requests wait",
            "One request of twenty waits longer than 7.5s before it starts. "
            + queue_depth.KIND.advice,
        ),
    ),
    Case("SlipwayVllmQueueTime", _queued(5)),
    Case(
        "SlipwayVllmCacheFull",
        {f"vllm:kv_cache_usage_perc{_in()}": "0.96x30"},
        labels=_OF,
        says=_CACHE_SAYS,
    ),
    # The name before release 0.9.
    Case(
        "SlipwayVllmCacheFull",
        {f"vllm:gpu_cache_usage_perc{_in()}": "0.96x30"},
        labels=_OF,
        says=_CACHE_SAYS,
    ),
    Case("SlipwayVllmCacheFull", {f"vllm:kv_cache_usage_perc{_in()}": "0.95x30"}),
    Case("SlipwayVllmCacheFull", {f"vllm:kv_cache_usage_perc{_in()}": "0.5x21 0.96x9"}),
]

_GPU: Final = {"gpu": "3", "Hostname": "node-1"}
_AT_GPU: Final = '{gpu="3",Hostname="node-1"}'


def _memory(used: int, free: int, reserved: int | None) -> Series:
    made = {
        f"DCGM_FI_DEV_FB_USED{_AT_GPU}": f"{used}x30",
        f"DCGM_FI_DEV_FB_FREE{_AT_GPU}": f"{free}x30",
    }
    if reserved is not None:
        made[f"DCGM_FI_DEV_FB_RESERVED{_AT_GPU}"] = f"{reserved}x30"
    return made


def _owned(metric: str, busy: str, *, held: str = "20000x290", is_renamed: bool = True) -> Series:
    owner = (
        f'exported_namespace="vision",exported_pod="{POD}",namespace="gpu-operator",pod="dcgm-x"'
        if is_renamed
        else f'namespace="vision",pod="{POD}"'
    )
    return {f'{metric}{{gpu="3",{owner}}}': busy, f'DCGM_FI_DEV_FB_USED{{gpu="3",{owner}}}': held}


_MEMORY_SAYS: Final = (
    "GPU 3 of node-1 has no memory left",
    f"95% of its memory is used: a larger request may fail. {gpu_memory.KIND.advice}",
)
_IDLE_SAYS: Final = (
    f"{_WHAT} holds idle GPUs",
    f"Its GPUs were busy 0.5% of the last 24 hours. {idle_gpus.KIND.advice}",
)


def _idle(series: Series, *, fires: bool = False) -> Case:
    """After a day. Each evaluation goes through all samples of it: with one a minute that is 25 times as much."""
    return Case(
        "SlipwayGpuIdle",
        series,
        at="1445m",
        interval="5m",
        severity="info",
        labels=_OF if fires else None,
        says=_IDLE_SAYS,
    )


_ENGINES: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
GPUS: Final = [
    Case("SlipwayGpuMemory", _memory(9500, 400, 100), labels=_GPU, says=_MEMORY_SAYS),
    # An exporter that does not report what is reserved.
    Case("SlipwayGpuMemory", _memory(9500, 500, None), labels=_GPU, says=_MEMORY_SAYS),
    # What is reserved is not used.
    Case("SlipwayGpuMemory", _memory(9500, 400, 101)),
    _idle(_owned(_ENGINES, "0.005x290"), fires=True),
    # With honorLabels, and without profiling.
    _idle(_owned("DCGM_FI_DEV_GPU_UTIL", "0.5x290", is_renamed=False), fires=True),
    _idle(_owned(_ENGINES, "0.01x290")),
    # It was busy for an hour of the day.
    _idle(_owned(_ENGINES, "0x99 1x11 0x177")),
    # It got the GPU an hour ago; it gave it back an hour ago.
    _idle(_owned(_ENGINES, "_x276 0x13", held="_x276 1x13")),
    _idle(_owned(_ENGINES, "0x276", held="1x276")),
    Case(
        "SlipwayGpuXid",
        {f"DCGM_FI_DEV_XID_ERRORS{_AT_GPU}": "0x20 79x10"},
        severity="critical",
        labels=_GPU,
        says=(
            "GPU 3 of node-1 reported XID 79",
            "The driver reported a fault that is not the program's own. Cordon the node, drain it, and look the code"
            " up in NVIDIA's list of XIDs: most need a reset or another GPU.",
        ),
    ),
    *(
        Case("SlipwayGpuXid", {f"DCGM_FI_DEV_XID_ERRORS{_AT_GPU}": f"{code}x30"})
        for code in (0, 13, 31, 43, 45)
    ),
    Case(
        "SlipwayGpuRowRemapping",
        {f"DCGM_FI_DEV_ROW_REMAP_FAILURE{_AT_GPU}": "0x20 1x10"},
        severity="critical",
        labels=_GPU,
        says=(
            "GPU 3 of node-1 cannot replace broken memory",
            "Remapping of rows failed. Cordon and drain the node, and have the GPU replaced.",
        ),
    ),
    Case("SlipwayGpuRowRemapping", {f"DCGM_FI_DEV_ROW_REMAP_FAILURE{_AT_GPU}": "0x30"}),
]


def target(
    metric: TargetMetric = TargetMetric.AVAILABILITY,
    *,
    engine: str = engines.KSERVE_TRITON,
    objective: float = 99.9,
    ms: int | None = None,
) -> TargetFacts:
    return TargetFacts("search", "vision", "detector", metric, objective, ms, engine)


def _burning(burn_rate: str, metric: str) -> Mapping[str, str]:
    return {
        "team": "search",
        "namespace": "vision",
        "deployment": "detector",
        "target": metric,
        "burn_rate": burn_rate,
    }


def _burns(share: str, hours: int, description: str) -> tuple[str, str]:
    return (
        "The error budget of search/detector burns too fast",
        f"{share} of the requests of {hours} h were bad; the target is {description}. {slo_burn.KIND.advice}",
    )


def _first_tokens(slow: int) -> Series:
    """Of 1000 a minute; the bounds as Python writes them."""
    name = "vllm:time_to_first_token_seconds"
    return {
        f"{name}_bucket{_in(le='1.0')}": f"0+{1000 - slow}x120",
        f"{name}_bucket{_in(le='2.5')}": "0+1000x120",
        f"{name}_count{_in()}": "0+1000x120",
    }


_AVAILABLE: Final = "99.9% of requests without an error"
_HOURS_LATER: Final = "400m"
# With the first target that its name is of.
FAST: Final = [
    Case(
        "SlipwayTargetBurning",
        _triton("0+20x120", "0+980x120"),
        at="119m",
        severity="critical",
        labels=_burning("14.4", "availability"),
        says=_burns("2%", 1, _AVAILABLE),
    ),
    # Below 14.4 times; errors that ended; four failures; nothing at all; another deployment.
    Case("SlipwayTargetBurning", _triton("0+5x120", "0+995x120"), at="59m"),
    Case("SlipwayTargetBurning", _triton("0+20x110 2200x10", "0+980x120"), at="119m"),
    Case("SlipwayTargetBurning", _triton("0x100 1 2 3 4 4x16", "0+1x120"), at="105m"),
    Case("SlipwayTargetBurning", _triton("0x120", "0x120"), at="119m"),
    Case(
        "SlipwayTargetBurning",
        _triton("0+20x120", "0+980x120", pod="detector-2-r1-predictor-7d9f6c5b8-x2k4p"),
        at="119m",
    ),
]
SLOW: Final = [
    Case(
        "SlipwayTargetBurning",
        _triton("0+10x420", "0+990x420"),
        at=_HOURS_LATER,
        labels=_burning("6", "availability"),
        says=_burns("1%", 6, _AVAILABLE),
    ),
    Case("SlipwayTargetBurning", _triton("0+5x420", "0+995x420"), at=_HOURS_LATER),
]
OF_VLLM: Final = [
    Case(
        "SlipwayTargetBurning",
        _vllm("0+20x120", "0+1x120", "0+980x120"),
        at="119m",
        severity="critical",
        labels=_burning("14.4", "availability"),
        says=_burns("2%", 1, _AVAILABLE),
    ),
    Case("SlipwayTargetBurning", _vllm("0x120", "0x120", "0+980x120"), at="119m"),
]
FIRST_TOKEN: Final = [
    Case(
        "SlipwayTargetBurning",
        _first_tokens(20),
        at="119m",
        severity="critical",
        labels=_burning("14.4", "first_token"),
        says=_burns("2%", 1, "99.9% of requests with the first token within 1,500 ms"),
    ),
    Case("SlipwayTargetBurning", _first_tokens(5), at="59m"),
]
