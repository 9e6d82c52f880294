"""The metrics that vLLM exports, under its names of release 0.11 and newer, of this server's own engine."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_LABELS = ("model_name", "engine")
_ENGINE = "0"
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


class Metrics:
    """Every series exists from the start with 0, as vLLM's do."""

    def __init__(self, model: str) -> None:
        self._registry = CollectorRegistry()
        self._values = (model, _ENGINE)
        self.running = self._gauge("num_requests_running", "Requests in execution batches.")
        self.waiting = self._gauge("num_requests_waiting", "Requests waiting to be processed.")
        self.cache_usage = self._gauge("kv_cache_usage_perc", "KV-cache usage, 0 to 1.")
        self.preemptions = self._counter("num_preemptions", "Preemptions by the engine.")
        self.prompt_tokens = self._counter("prompt_tokens", "Prefill tokens processed.")
        self.generation_tokens = self._counter("generation_tokens", "Generated tokens.")
        self.first_token = self._histogram("time_to_first_token_seconds", _FIRST_TOKEN)
        self.between_tokens = self._histogram("inter_token_latency_seconds", _BETWEEN_TOKENS)
        self.whole_request = self._histogram("e2e_request_latency_seconds", _WHOLE_REQUEST)
        self.queue_time = self._histogram("request_queue_time_seconds", _WHOLE_REQUEST)
        self.prefill_time = self._histogram("request_prefill_time_seconds", _WHOLE_REQUEST)
        self.decode_time = self._histogram("request_decode_time_seconds", _WHOLE_REQUEST)
        self.inference_time = self._histogram("request_inference_time_seconds", _WHOLE_REQUEST)
        self._finished = Counter(
            "vllm:request_success",
            "Successfully processed requests.",
            (*_LABELS, "finished_reason"),
            registry=self._registry,
        )
        for reason in FINISHED_REASONS:
            self._finished.labels(*self._values, reason)
        self._http_requests = Counter(
            "http_requests",
            "Requests by method, status and handler.",
            ("handler", "method", "status"),
            registry=self._registry,
        )

    def finish(self, reason: str) -> None:
        self._finished.labels(*self._values, reason).inc()

    def answer(self, handler: str, method: str, status: int) -> None:
        self._http_requests.labels(handler, method, f"{status // 100}xx").inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _gauge(self, name: str, help_text: str) -> Gauge:
        gauge = Gauge(f"vllm:{name}", help_text, _LABELS, registry=self._registry)
        return gauge.labels(*self._values)

    def _counter(self, name: str, help_text: str) -> Counter:
        counter = Counter(f"vllm:{name}", help_text, _LABELS, registry=self._registry)
        return counter.labels(*self._values)

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        histogram = Histogram(
            f"vllm:{name}",
            f"Histogram of {name}.",
            _LABELS,
            buckets=buckets,
            registry=self._registry,
        )
        return histogram.labels(*self._values)
