"""Parse Triton's /metrics text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from math import inf, nan

from fleet.telemetry.domain import exposition
from fleet.telemetry.domain.counters import CounterSums

_COUNTERS = {
    "nv_inference_request_success": "request_success",
    "nv_inference_request_failure": "request_failure",
    "nv_inference_count": "inference_count",
    "nv_inference_exec_count": "execution_count",
    "nv_inference_request_duration_us": "request_duration_us",
    "nv_inference_queue_duration_us": "queue_duration_us",
    "nv_inference_compute_input_duration_us": "compute_input_us",
    "nv_inference_compute_infer_duration_us": "compute_infer_us",
    "nv_inference_compute_output_duration_us": "compute_output_us",
}
_PENDING = "nv_inference_pending_request_count"
_SUMMED = frozenset((*_COUNTERS, _PENDING))
_P95 = "nv_inference_request_summary_us"
_GPU = "nv_gpu_utilization"
_GPU_MEMORY = "nv_gpu_memory_used_bytes"
_PREFIX = "nv_"
_MIB = 2**20
# All samples that are read of a page.
SAMPLES = frozenset((*_SUMMED, *(f"{name}_total" for name in _COUNTERS), _P95, _GPU, _GPU_MEMORY))
QUANTILE = "0.95"


class NotTritonMetrics(Exception):
    """The text is not Prometheus metrics, or has no counters of the models."""


class TritonPage:
    """One reading, summed over the models' versions, the GPUs and the failure reasons."""

    def __init__(self, text: str, *, models: Collection[str]) -> None:
        """Raises NotTritonMetrics. Empty `models` selects every model of the server."""
        self._sums: dict[str, float] = defaultdict(float)
        self._gpus: list[float] = []
        self._gpu_memory: list[float] = []
        self._p95: list[float] = []
        try:
            for name, labels, value in exposition.samples(text):
                if name.startswith(_PREFIX):
                    self._take(name, labels, value, models)
        except ValueError as error:
            raise NotTritonMetrics(f"cannot be read: {error}") from error
        if "nv_inference_request_success" not in self._sums:
            raise NotTritonMetrics(f"no counters of {', '.join(models) or 'any model'}")
        wrong = [n for n, value in self._sums.items() if n != _PENDING and not 0 <= value < inf]
        if wrong:
            raise NotTritonMetrics(f"{wrong[0]} is negative or not a number")

    @property
    def counters(self) -> CounterSums:
        return CounterSums(**{name: int(self._sums[metric]) for metric, name in _COUNTERS.items()})

    @property
    def pending_requests(self) -> int | None:
        """The pending requests of all models. None if those of any model are not known."""
        value = self._sums.get(_PENDING, nan)
        return int(value) if exposition.is_known(value) else None

    @property
    def gpu_utilisation(self) -> float | None:
        """The mean utilisation of the GPUs that the server sees, 0..1."""
        return sum(self._gpus) / len(self._gpus) if self._gpus else None

    @property
    def gpu_memory_used_mib(self) -> int | None:
        """The used memory of the fullest GPU that the server sees, including other processes."""
        return -(-int(max(self._gpu_memory)) // _MIB) if self._gpu_memory else None

    @property
    def request_p95_us(self) -> float | None:
        """The p95 of the slowest model and version."""
        return max(self._p95, default=None)

    def _take(self, name: str, labels: str, value: float, models: Collection[str]) -> None:
        name = name.removesuffix("_total")
        if name in _SUMMED:
            # The model of a line that was cut off is not known, so it may be one of these.
            if not (models and labels) or exposition.parse_labels(labels).get("model") in models:
                self._sums[name] += value
        elif not exposition.is_known(value):
            return
        elif name == _GPU:
            self._gpus.append(value)
        elif name == _GPU_MEMORY:
            self._gpu_memory.append(value)
        elif name == _P95:
            of_sample = exposition.parse_labels(labels)
            is_of_model = not models or of_sample.get("model") in models
            if is_of_model and of_sample.get("quantile") == QUANTILE:
                self._p95.append(value)
