"""Parse vLLM's metrics: of its own server, and those that Triton's vLLM backend exports beside Triton's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from fleet.telemetry.domain.counters import Counters

PREFIX: Final = "vllm:"
_FINISHED: Final = "vllm:request_success"
# A client that left is no failure of the server.
_NOT_SERVED: Final = frozenset({"abort", "error"})
_HTTP: Final = "http_requests"
_API: Final = "/v1/"
_FIRST: Final = ("vllm:time_to_first_token_seconds",)
# Renamed with 0.11; the older name is read where the newer one is missing.
_LATER: Final = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
_WHOLE: Final = ("vllm:e2e_request_latency_seconds",)
_QUEUE: Final = ("vllm:request_queue_time_seconds",)
_INFERENCE: Final = ("vllm:request_inference_time_seconds",)
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")


class NotVllmMetrics(Exception):
    """The text is not Prometheus metrics, or has none of vLLM."""


class VllmPage:
    """One reading, summed over the engines of data parallelism."""

    def __init__(self, text: str) -> None:
        """Raises NotVllmMetrics."""
        self._sums: dict[str, float] = defaultdict(float)
        self._largest: dict[str, float] = {}
        self._finished: dict[str, float] = defaultdict(float)
        self._server_errors = 0.0
        try:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    self._take(sample.name.removesuffix("_total"), sample.labels, sample.value)
        except ValueError as error:
            raise NotVllmMetrics(f"cannot be read: {error}") from error
        if not any(name.startswith(PREFIX) for name in self._sums):
            raise NotVllmMetrics("no metrics of vLLM")

    @property
    def counters(self) -> Counters:
        """Requests, their times and tokens, as vLLM's own server counts them."""
        served = int(sum(n for reason, n in self._finished.items() if reason not in _NOT_SERVED))
        # A failed stream counts as an error of the engine only, a refused request as one of HTTP only.
        failed = int(max(self._server_errors, self._finished.get("error", 0)))
        return replace(
            self.tokens,
            request_success=served,
            request_failure=failed,
            inference_count=served,
            request_duration_us=self._microseconds(_WHOLE),
            queue_duration_us=self._microseconds(_QUEUE),
            compute_infer_us=self._microseconds(_INFERENCE),
        )

    @property
    def tokens(self) -> Counters:
        """Tokens alone, without requests: Triton counts those itself."""
        return Counters(
            prompt_tokens=int(self._sums["vllm:prompt_tokens"]),
            generation_tokens=int(self._sums["vllm:generation_tokens"]),
            first_tokens=self._count(_FIRST),
            first_token_us=self._microseconds(_FIRST),
            later_tokens=self._count(_LATER),
            later_token_us=self._microseconds(_LATER),
            preemptions=int(self._sums["vllm:num_preemptions"]),
        )

    @property
    def running_requests(self) -> int | None:
        return int(self._sums[_RUNNING]) if _RUNNING in self._sums else None

    @property
    def pending_requests(self) -> int | None:
        return int(self._sums[_WAITING]) if _WAITING in self._sums else None

    @property
    def kv_cache_usage(self) -> float | None:
        """0..1, of the fullest engine: the one that preempts first."""
        return next((self._largest[name] for name in _CACHE if name in self._largest), None)

    def _count(self, names: tuple[str, ...]) -> int:
        return int(self._sums[f"{self._present(names)}_count"])

    def _microseconds(self, names: tuple[str, ...]) -> int:
        return round(self._sums[f"{self._present(names)}_sum"] * 1_000_000)

    def _present(self, names: tuple[str, ...]) -> str:
        return next((name for name in names if f"{name}_count" in self._sums), names[0])

    def _take(self, name: str, labels: dict[str, str], value: float) -> None:
        if name == _HTTP:
            is_failure = labels.get("status", "").startswith("5")
            if is_failure and labels.get("handler", "").startswith(_API):
                self._server_errors += value
        elif name == _FINISHED:
            self._finished[labels.get("finished_reason", "")] += value
            self._sums[name] += value
        elif name.startswith(PREFIX) and not name.endswith("_bucket"):
            self._sums[name] += value
            self._largest[name] = max(value, self._largest.get(name, value))
