"""Parse the metrics of a language model: of the own server of vLLM, SGLang or TensorRT-LLM, and those that Triton's vLLM
backend exports beside Triton's.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from fleet.telemetry.domain.counters import Counters
from fleet.telemetry.domain.histograms import Histogram
from fleet.telemetry.domain.metric_names import (
    LATER_TENSORRT_LLM,
    SERVERS,
    TENSORRT_LLM,
    MetricNames,
)

# A client that left is no failure of the server.
_ABORTED: Final = frozenset({"abort", "cancelled"})
_NOT_SERVED: Final = _ABORTED | {"error"}
_API: Final = "/v1/"
# Every GPU of tensor parallelism works on the same pass; SGLang counts it on each.
_FIRST_RANK: Final = "0"


class NotLanguageMetrics(Exception):
    """The text is not Prometheus metrics, or has none of the server."""


def server_of(text: str) -> MetricNames | None:
    """The server whose metrics the text contains."""
    return next((names for names in SERVERS if names.sign in text), None)


class LanguagePage:
    """One reading, summed over the engines of data parallelism."""

    def __init__(self, text: str, names: MetricNames) -> None:
        """Raises NotLanguageMetrics."""
        self._names = names
        self._buckets = frozenset(f"{name}_bucket" for name in names.first_token)
        self._sums: dict[str, float] = defaultdict(float)
        self._largest: dict[str, float] = {}
        self._finished: dict[str, float] = defaultdict(float)
        self._server_errors = 0.0
        self._first_tokens: dict[float, int] = defaultdict(int)
        try:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    self._take(self._name_of(sample.name), sample.labels, sample.value)
        except ValueError as error:
            raise NotLanguageMetrics(f"cannot be read: {error}") from error
        if not any(name.startswith(names.prefix) for name in self._sums):
            raise NotLanguageMetrics(f"no metrics of {names.server}")

    @property
    def counters(self) -> Counters:
        """Requests, their times and tokens, as the language model's own server counts them."""
        served = int(sum(n for reason, n in self._finished.items() if reason not in _NOT_SERVED))
        # A failed stream counts as an error of the engine only, a refused request as one of HTTP only.
        failed = int(max(self._server_errors, self._finished.get("error", 0)))
        return replace(
            self.tokens,
            request_success=served,
            request_failure=failed,
            request_aborted=int(sum(self._finished.get(reason, 0) for reason in _ABORTED)),
            inference_count=served,
            request_duration_us=self._microseconds((self._names.whole_request,)),
            queue_duration_us=self._microseconds((self._names.queue,)),
            compute_infer_us=self._compute(),
        )

    @property
    def tokens(self) -> Counters:
        """Tokens alone, without requests: Triton counts those itself."""
        names = self._names
        return Counters(
            prompt_tokens=int(self._sums[names.prompt_tokens]),
            generation_tokens=int(self._sums[names.generation_tokens]),
            first_tokens=self._count(names.first_token),
            first_token_us=self._microseconds(names.first_token),
            later_tokens=self._count(names.later_token),
            later_token_us=self._microseconds(names.later_token),
            preemptions=int(self._sums[names.preemptions]),
        )

    @property
    def running_requests(self) -> int | None:
        name = self._names.running
        return int(self._sums[name]) if name in self._sums else None

    @property
    def pending_requests(self) -> int | None:
        name = self._names.waiting
        return int(self._sums[name]) if name in self._sums else None

    @property
    def kv_cache_usage(self) -> float | None:
        """0..1, of the fullest engine: the one that preempts first."""
        present = (name for name in self._names.cache_usage if name in self._largest)
        return next((self._largest[name] for name in present), None)

    @property
    def first_token_times(self) -> Histogram | None:
        """Seconds until the first token; None where the server has no such histogram."""
        return dict(sorted(self._first_tokens.items())) or None

    def _count(self, names: tuple[str, ...]) -> int:
        return int(self._sums[f"{self._present(names)}_count"])

    def _microseconds(self, names: tuple[str, ...]) -> int:
        return round(self._sums[f"{self._present(names)}_sum"] * 1_000_000)

    def _compute(self) -> int:
        present = (name for name in self._names.compute if name in self._sums)
        return round(next((self._sums[name] for name in present), 0.0) * 1_000_000)

    def _present(self, names: tuple[str, ...]) -> str:
        return next((name for name in names if f"{name}_count" in self._sums), names[0])

    def _name_of(self, sample: str) -> str:
        name = sample.removesuffix("_total")
        is_later = self._names is TENSORRT_LLM
        return name.removeprefix(LATER_TENSORRT_LLM) if is_later else name

    def _is_of_api(self, labels: dict[str, str]) -> bool:
        path = self._names.responses.path
        return not path or labels.get(path, "").startswith(_API)

    def _take(self, name: str, labels: dict[str, str], value: float) -> None:
        responses = self._names.responses
        if name == responses.name:
            is_failure = labels.get(responses.status, "").startswith("5")
            if is_failure and self._is_of_api(labels):
                self._server_errors += value
        elif name == self._names.finished:
            self._finished[labels.get("finished_reason", "")] += value
            self._sums[name] += value
        elif name in self._names.compute and labels.get("tp_rank", _FIRST_RANK) != _FIRST_RANK:
            return
        elif name in self._buckets:
            self._first_tokens[float(labels["le"])] += int(value)
        elif name.startswith(self._names.prefix) and not name.endswith("_bucket"):
            self._sums[name] += value
            self._largest[name] = max(value, self._largest.get(name, value))
