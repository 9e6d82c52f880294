"""One reading of a pod's metrics, by whichever model server answered."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from fleet.telemetry.domain import vllm_metrics
from fleet.telemetry.domain.counters import Reading
from fleet.telemetry.domain.triton_metrics import TritonPage
from fleet.telemetry.domain.vllm_metrics import VllmPage

_TRITON = "nv_inference_"


def read(text: str, *, models: Collection[str], at: datetime) -> Reading:
    """Raises NotTritonMetrics or NotVllmMetrics. `models` selects those of Triton."""
    vllm = VllmPage(text) if vllm_metrics.PREFIX in text else None
    if vllm is not None and _TRITON not in text:
        return Reading(
            at=at,
            counters=vllm.counters,
            pending_requests=vllm.pending_requests,
            running_requests=vllm.running_requests,
            kv_cache_usage=vllm.kv_cache_usage,
        )
    triton = TritonPage(text, models=models)
    return Reading(
        at=at,
        counters=triton.counters if vllm is None else triton.counters + vllm.tokens,
        gpu_utilisation=triton.gpu_utilisation,
        pending_requests=triton.pending_requests,
        request_p95_us=triton.request_p95_us,
        gpu_memory_used_mib=triton.gpu_memory_used_mib,
        kv_cache_usage=None if vllm is None else vllm.kv_cache_usage,
    )
