"""Parse the metrics of a language model: of the own server of vLLM, SGLang or TensorRT-LLM, and those that Triton's vLLM
backend exports beside Triton's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isnan, nan
from typing import Final

from fleet.telemetry.domain import exposition
from fleet.telemetry.domain.counters import CounterSums
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
# The ranks of an engine have the same requests and do the same passes; SGLang counts them on each where it is told to
# (--enable-metrics-for-all-schedulers). Engines of data parallelism have requests of their own.
_STAGE: Final = "pp_rank"
_RANKS: Final = frozenset(
    {"tp_rank", _STAGE, "moe_ep_rank", "ep_rank", "moe_dp_rank", "attn_tp_rank", "attn_cp_rank"}
)
Labels = tuple[tuple[str, str], ...]


class NotLanguageMetrics(Exception):
    """The text is not Prometheus metrics, or has none of the server."""


def detect_server(text: str) -> MetricNames | None:
    """Return the server whose metrics the text contains."""
    return next((names for names in SERVERS if names.sign in text), None)


class LanguagePage:
    """One reading, summed over the engines of data parallelism; ranks that work on the same requests count once."""

    def __init__(self, text: str, names: MetricNames) -> None:
        """Raises NotLanguageMetrics."""
        self._names = names
        self._read = frozenset(_names_read(names))
        self._has_any = False
        by_group: dict[str, dict[Labels, float]] = defaultdict(dict)
        try:
            for name, labels, value in exposition.samples(text):
                self._take(by_group, self._name_of(name), labels, value)
            self._groups = dict(by_group)
            self._first_tokens = self._count_first_tokens()
        except ValueError as error:
            raise NotLanguageMetrics(f"cannot be read: {error}") from error
        if not self._has_any:
            raise NotLanguageMetrics(f"no metrics of {names.server}")
        self._sums: dict[str, float] = defaultdict(
            float, {name: sum(groups.values()) for name, groups in self._groups.items()}
        )

    @property
    def counters(self) -> CounterSums:
        """The requests, their times and tokens, as the language model's own server counts them."""
        finished = self._count_finished()
        served = int(sum(n for reason, n in finished.items() if reason not in _NOT_SERVED))
        # A failed stream counts as an error of the engine only, a refused request as one of HTTP only.
        failed = int(max(self._count_server_errors(), finished.get("error", 0)))
        return replace(
            self.tokens,
            request_success=served,
            request_failure=failed,
            request_aborted=int(sum(finished.get(reason, 0) for reason in _ABORTED)),
            inference_count=served,
            request_duration_us=self._microseconds((self._names.whole_request,)),
            queue_duration_us=self._microseconds((self._names.queue,)),
            compute_infer_us=self._compute(),
        )

    @property
    def tokens(self) -> CounterSums:
        """The tokens alone, without requests: Triton counts those itself."""
        names = self._names
        return CounterSums(
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
        return self._gauge(self._names.running)

    @property
    def pending_requests(self) -> int | None:
        return self._gauge(self._names.waiting)

    @property
    def kv_cache_usage(self) -> float | None:
        """The KV cache usage, 0..1, of the fullest engine: the one that preempts first."""
        for name in self._names.cache_usage:
            known = [n for n in self._groups.get(name, {}).values() if exposition.is_known(n)]
            if known:
                return max(known)
        return None

    @property
    def first_token_times(self) -> Histogram | None:
        """The seconds until the first token. None if the server has no such histogram."""
        return dict(sorted(self._first_tokens.items())) or None

    def _gauge(self, name: str) -> int | None:
        """Return the gauge summed over engines. None if that of any engine is not known."""
        value = self._sums.get(name, nan)
        return int(value) if exposition.is_known(value) else None

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

    def _count_finished(self) -> dict[str, float]:
        """Count the finished requests by their reason."""
        finished: dict[str, float] = defaultdict(float)
        for labels, value in self._groups.get(self._names.finished, {}).items():
            finished[dict(labels).get("finished_reason", "")] += value
        return finished

    def _count_server_errors(self) -> float:
        responses = self._names.responses
        return sum(
            value
            for labels, value in self._groups.get(responses.name, {}).items()
            if dict(labels).get(responses.status, "").startswith("5")
            and self._is_of_api(dict(labels))
        )

    def _is_of_api(self, labels: Mapping[str, str]) -> bool:
        path = self._names.responses.path
        return not path or labels.get(path, "").startswith(_API)

    def _count_first_tokens(self) -> dict[float, int]:
        """Return the cumulative counts by bound. Raises ValueError for a bucket without a bound or count."""
        counts: dict[float, int] = defaultdict(int)
        for name in self._names.first_token:
            for labels, value in self._groups.get(f"{name}_bucket", {}).items():
                counts[float(dict(labels).get("le", ""))] += int(value)
        return counts

    def _take(
        self, by_group: dict[str, dict[Labels, float]], name: str, labels: str, value: float
    ) -> None:
        """Keep the largest of the ranks of a group: they report one number, one a little later than the other."""
        self._has_any |= name.startswith(self._names.prefix)
        if name not in self._read:
            return
        ranks = _RANKS - {_STAGE} if name in self._names.compute else _RANKS
        own = exposition.parse_labels(labels).items()
        group = tuple(sorted(pair for pair in own if pair[0] not in ranks))
        before = by_group[name].get(group, value)
        # A rank whose number is not known leaves that of the others.
        by_group[name][group] = value if isnan(before) else max(before, value)


def _names_read(names: MetricNames) -> Iterator[str]:
    """Return the names of samples without `_total`."""
    yield from (names.finished, names.responses.name, names.preemptions)
    yield from (names.prompt_tokens, names.generation_tokens, names.running, names.waiting)
    yield from (*names.cache_usage, *names.compute)
    for histogram in (names.whole_request, names.queue, *names.first_token, *names.later_token):
        yield from (f"{histogram}_sum", f"{histogram}_count")
    yield from (f"{name}_bucket" for name in names.first_token)
