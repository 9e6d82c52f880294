"""One reading of a pod's metrics, by whichever model server answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from fleet.telemetry.domain import exposition, language_metrics
from fleet.telemetry.domain.counters import COUNTER_NAMES, PodReading
from fleet.telemetry.domain.language_metrics import LanguagePage, NotLanguageMetrics
from fleet.telemetry.domain.triton_metrics import TritonPage

_TRITON = "nv_inference_"


def read(text: str, *, models: Collection[str], at: datetime) -> PodReading:
    """Raises NotTritonMetrics or NotLanguageMetrics. `models` selects those of Triton.

    A gauge that is no number is not known, and the rest of the page counts. A counter that is none refuses the page:
    without it the sums would look as if the server had started again.
    """
    try:
        reading = _read(text, models, at)
    except (ValueError, OverflowError) as error:
        raise NotLanguageMetrics(f"a counter is not a number: {error}") from error
    if not all(map(exposition.is_known, _numbers(reading))):
        raise NotLanguageMetrics("a counter is negative or larger than any server counts")
    return reading


def _numbers(reading: PodReading) -> Iterable[float]:
    """Return the counters of a reading, all of which must be known."""
    times = (reading.first_token_times or {}).values()
    return (*(getattr(reading.counters, name) for name in COUNTER_NAMES), *times)


def _read(text: str, models: Collection[str], at: datetime) -> PodReading:
    server = language_metrics.detect_server(text)
    language = None if server is None else LanguagePage(text, server)
    if language is not None and _TRITON not in text:
        return PodReading(
            at=at,
            counters=language.counters,
            pending_requests=language.pending_requests,
            running_requests=language.running_requests,
            kv_cache_usage=language.kv_cache_usage,
            first_token_times=language.first_token_times,
        )
    triton = TritonPage(text, models=models)
    return PodReading(
        at=at,
        counters=triton.counters if language is None else triton.counters + language.tokens,
        gpu_utilisation=triton.gpu_utilisation,
        pending_requests=triton.pending_requests,
        request_p95_us=triton.request_p95_us,
        gpu_memory_used_mib=triton.gpu_memory_used_mib,
        kv_cache_usage=None if language is None else language.kv_cache_usage,
        first_token_times=None if language is None else language.first_token_times,
    )
