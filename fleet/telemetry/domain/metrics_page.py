"""One reading of a pod's metrics, by whichever model server answered."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from fleet.telemetry.domain import language_metrics
from fleet.telemetry.domain.counters import Reading
from fleet.telemetry.domain.language_metrics import LanguagePage, NotLanguageMetrics
from fleet.telemetry.domain.triton_metrics import TritonPage

_TRITON = "nv_inference_"


def read(text: str, *, models: Collection[str], at: datetime) -> Reading:
    """Raises NotTritonMetrics or NotLanguageMetrics. `models` selects those of Triton."""
    try:
        return _read(text, models, at)
    except (ValueError, OverflowError) as error:
        raise NotLanguageMetrics(f"a counter is no number: {error}") from error


def _read(text: str, models: Collection[str], at: datetime) -> Reading:
    server = language_metrics.server_of(text)
    language = None if server is None else LanguagePage(text, server)
    if language is not None and _TRITON not in text:
        return Reading(
            at=at,
            counters=language.counters,
            pending_requests=language.pending_requests,
            running_requests=language.running_requests,
            kv_cache_usage=language.kv_cache_usage,
            first_token_times=language.first_token_times,
        )
    triton = TritonPage(text, models=models)
    return Reading(
        at=at,
        counters=triton.counters if language is None else triton.counters + language.tokens,
        gpu_utilisation=triton.gpu_utilisation,
        pending_requests=triton.pending_requests,
        request_p95_us=triton.request_p95_us,
        gpu_memory_used_mib=triton.gpu_memory_used_mib,
        kv_cache_usage=None if language is None else language.kv_cache_usage,
        first_token_times=None if language is None else language.first_token_times,
    )
