"""The metrics of vLLM (names of release 0.11 and newer) or of SGLang (0.5.10), of this server's own engine."""

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_BETWEEN_TOKENS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
)  # fmt: skip
_WHOLE_REQUEST = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
FINISHED_REASONS = ("stop", "length", "abort", "error")


@dataclass(frozen=True, slots=True)
class ExportedServer:
    """Whose metrics are exported. A metric without a name is not."""

    name: str
    labels: Mapping[str, str]
    names: Mapping[str, str]
    # Of finished requests, with their reason; empty where the server does not say it.
    reason_label: str
    http_labels: tuple[str, str, str]
    is_status_exact: bool


VLLM = ExportedServer(
    name="vLLM",
    labels={"engine": "0"},
    names={
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "cache_usage": "vllm:kv_cache_usage_perc",
        "preemptions": "vllm:num_preemptions",
        "prompt_tokens": "vllm:prompt_tokens",
        "generation_tokens": "vllm:generation_tokens",
        "first_token": "vllm:time_to_first_token_seconds",
        "between_tokens": "vllm:inter_token_latency_seconds",
        "whole_request": "vllm:e2e_request_latency_seconds",
        "queue_time": "vllm:request_queue_time_seconds",
        "prefill_time": "vllm:request_prefill_time_seconds",
        "decode_time": "vllm:request_decode_time_seconds",
        "inference_time": "vllm:request_inference_time_seconds",
        "finished": "vllm:request_success",
        "http": "http_requests",
    },
    reason_label="finished_reason",
    http_labels=("handler", "method", "status"),
    is_status_exact=False,
)
SGLANG = ExportedServer(
    name="SGLang",
    labels={"tp_rank": "0"},
    names={
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "cache_usage": "sglang:token_usage",
        "preemptions": "sglang:num_retracted_requests",
        "prompt_tokens": "sglang:prompt_tokens",
        "generation_tokens": "sglang:generation_tokens",
        "step_time": "sglang:gpu_execution_seconds",
        "first_token": "sglang:time_to_first_token_seconds",
        "between_tokens": "sglang:inter_token_latency_seconds",
        "whole_request": "sglang:e2e_request_latency_seconds",
        "queue_time": "sglang:queue_time_seconds",
        "finished": "sglang:num_requests",
        "http": "sglang:http_responses",
    },
    reason_label="",
    http_labels=("endpoint", "method", "status_code"),
    is_status_exact=True,
)
SERVERS = {"vllm": VLLM, "sglang": SGLANG}


class Metrics:
    """Every series exists from the start with 0, as vLLM's do."""

    def __init__(self, model: str, server: ExportedServer = VLLM) -> None:
        self._server = server
        self._registry = CollectorRegistry()
        self._labels = {"model_name": model, **server.labels}
        self.running = self._gauge("running", "Requests in execution batches.")
        self.waiting = self._gauge("waiting", "Requests waiting to be processed.")
        self.cache_usage = self._gauge("cache_usage", "KV-cache usage, 0 to 1.")
        self.preemptions = self._counter("preemptions", "Preemptions by the engine.")
        self.prompt_tokens = self._counter("prompt_tokens", "Prefill tokens processed.")
        self.generation_tokens = self._counter("generation_tokens", "Generated tokens.")
        self.step_time = self._counter("step_time", "Time of steps, here of the CPU.")
        self.first_token = self._histogram("first_token", _FIRST_TOKEN)
        self.between_tokens = self._histogram("between_tokens", _BETWEEN_TOKENS)
        self.whole_request = self._histogram("whole_request", _WHOLE_REQUEST)
        self.queue_time = self._histogram("queue_time", _WHOLE_REQUEST)
        self.prefill_time = self._histogram("prefill_time", _WHOLE_REQUEST)
        self.decode_time = self._histogram("decode_time", _WHOLE_REQUEST)
        self.inference_time = self._histogram("inference_time", _WHOLE_REQUEST)
        reasons = (server.reason_label,) if server.reason_label else ()
        self._finished = Counter(
            server.names["finished"],
            "Successfully processed requests.",
            (*self._labels, *reasons),
            registry=self._registry,
        )
        for reason in FINISHED_REASONS:
            self._finished_with(reason)
        self._http_requests = Counter(
            server.names["http"],
            "Requests by method, status and path.",
            server.http_labels,
            registry=self._registry,
        )

    def finish(self, reason: str) -> None:
        self._finished_with(reason).inc()

    def answer(self, handler: str, method: str, status: int) -> None:
        text = str(status) if self._server.is_status_exact else f"{status // 100}xx"
        self._http_requests.labels(handler, method, text).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _finished_with(self, reason: str) -> Counter:
        reasons = {self._server.reason_label: reason} if self._server.reason_label else {}
        return self._finished.labels(**self._labels, **reasons)

    def _exported(self, key: str) -> tuple[str, CollectorRegistry | None]:
        """Return a metric's name and registry. A metric that the server lacks is counted and not exported."""
        name = self._server.names.get(key)
        return (name, self._registry) if name else (key, None)

    def _gauge(self, key: str, help_text: str) -> Gauge:
        name, registry = self._exported(key)
        gauge = Gauge(name, help_text, tuple(self._labels), registry=registry)
        return gauge.labels(**self._labels)

    def _counter(self, key: str, help_text: str) -> Counter:
        name, registry = self._exported(key)
        counter = Counter(name, help_text, tuple(self._labels), registry=registry)
        return counter.labels(**self._labels)

    def _histogram(self, key: str, buckets: tuple[float, ...]) -> Histogram:
        name, registry = self._exported(key)
        histogram = Histogram(
            name,
            f"Histogram of {name}.",
            tuple(self._labels),
            buckets=buckets,
            registry=registry,
        )
        return histogram.labels(**self._labels)
