"""The number of replicas, and what decides it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, model_validator

from deployments.spec.domain import field_rules
from deployments.spec.domain.applicability import needs
from deployments.spec.domain.engines import WITHOUT_QUEUE_METRICS, Engine
from deployments.spec.domain.job_queues import KafkaTopic, RedisList, SqsQueue
from portal.core.definitions import Definition, Rejected, setting

# A range of replicas without an autoscaler: chosen by what the cluster can measure.
AUTOMATIC: Final = ""
FIXED: Final = "fixed"
HPA: Final = "hpa"
KEDA: Final = "keda"
KNATIVE: Final = "knative"
ScalingKind = Literal["", "fixed", "hpa", "keda", "knative"]
Metric = Literal[
    "",
    "concurrency",
    "cpu",
    "first-token",
    "gateway-latency",
    "gpu",
    "kv-cache",
    "latency",
    "memory",
    "queue",
    "rps",
]
SCALING_KINDS: Final = (FIXED, HPA, KEDA, KNATIVE)
# What a replica should handle, by the metric that the autoscaler watches.
DEFAULT_TARGETS: Final = {
    (HPA, "cpu"): 80,
    (HPA, "memory"): 80,
    (HPA, "queue"): 5,
    (KEDA, "queue"): 5,
    (KEDA, "latency"): 200,
    (KEDA, "gateway-latency"): 300,
    (KEDA, "gpu"): 70,
    (KEDA, "first-token"): 1000,
    (KEDA, "kv-cache"): 80,
    (KNATIVE, "concurrency"): 4,
    (KNATIVE, "rps"): 50,
}
# Metrics that only running pods have: without a pod there is nothing to scale up by.
POD_METRICS: Final = ("first-token", "gpu", "kv-cache", "latency", "queue")
# Metrics of language models alone.
LANGUAGE_METRICS: Final = ("first-token", "kv-cache")
# Metrics that are a percentage, and durations in milliseconds.
PERCENTAGES: Final = ("cpu", "gpu", "kv-cache", "memory")
DURATIONS: Final = ("first-token", "gateway-latency", "latency")
_CLOCK: Final[dict[str, Any]] = {
    "pattern": r"([01][0-9]|2[0-3]):[0-5][0-9]",
    "max_length": 5,
    "fix": "Use hh:mm, for example 07:00.",
}


class OfficeHours(Definition):
    """The replicas that are kept running from start to end on these days."""

    timezone: Annotated[
        str,
        AfterValidator(field_rules.check_timezone),
        setting(
            "Time zone",
            "IANA name, for example Europe/Berlin.",
            max_length=60,
            placeholder="Europe/Berlin",
            fix="Use an IANA name, for example Europe/Berlin.",
        ),
    ] = "UTC"
    start: Annotated[str, setting("From", "Time as hh:mm.", placeholder="07:00", **_CLOCK)] = (
        "07:00"
    )
    end: Annotated[str, setting("To", "Time as hh:mm.", placeholder="20:00", **_CLOCK)] = "20:00"
    days: Annotated[
        str,
        setting(
            "Days",
            "Days as in cron: 1-5 is Monday to Friday, 0 is Sunday.",
            pattern=r"[0-7](-[0-7])?(,[0-7](-[0-7])?)*|\*",
            max_length=20,
            fix="Use 1-5, or 0-6, or *.",
        ),
    ] = "1-5"
    replicas: Annotated[int, setting("Replicas in these hours", "At most the max replicas.")] = 1

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.start == self.end:
            raise Rejected(_CLOCK["fix"], {"end": _CLOCK["fix"]})
        return self


class Scaling(Definition):
    """The number of replicas. Kind, metric and target have defaults by the rest of the spec."""

    kind: Annotated[
        ScalingKind,
        setting(
            "Autoscaling",
            "Automatic if not set: by queue or requests in flight where the cluster has these "
            "metrics, otherwise fixed.",
            choices={
                AUTOMATIC: "Automatic",
                FIXED: "Fixed",
                HPA: "HPA",
                KEDA: "KEDA",
                KNATIVE: "Knative",
            },
            is_derived=True,
            is_blank_hidden=True,
        ),
        needs({HPA: "hpa", KEDA: "keda", KNATIVE: "knative"}),
    ] = AUTOMATIC
    metric: Annotated[
        Metric,
        setting(
            "Metric",
            "hpa: cpu, memory, queue. keda: queue, latency, gateway-latency, gpu; of language models "
            "also kv-cache, first-token. knative: concurrency, rps.",
            choices={
                "": "default",
                "cpu": "CPU",
                "memory": "Memory",
                "queue": "Requests waiting in the server",
                "latency": "Latency (server)",
                "gateway-latency": "Latency (gateway)",
                "gpu": "GPU utilisation",
                "kv-cache": "KV cache in use",
                "first-token": "Time to first token (p95)",
                "concurrency": "Requests in flight",
                "rps": "Requests per second",
            },
            is_derived=True,
        ),
    ] = ""
    target: Annotated[
        int,
        setting(
            "Target",
            "Value per replica that the autoscaler aims at. Leave empty for the default of the metric.",
            ge=0,
            le=100_000,
            fix="Use 1 to 100000, or remove it if no metric is set.",
            is_derived=True,
            is_empty_zero=True,
        ),
    ] = 0
    can_scale_to_zero: Annotated[
        bool,
        setting("Scale to zero", "No replicas and no cost without traffic."),
        needs({True: "scale-to-zero"}),
    ] = False
    cooldown_seconds: Annotated[
        int,
        setting(
            "Cooldown",
            "Idle time before scaling down.",
            unit="seconds",
            ge=0,
            le=86_400,
            fix="Use 0 to 86400 seconds.",
        ),
    ] = 300
    office_hours: Annotated[
        OfficeHours | None, setting("Office hours", "Keeps replicas running during these hours.")
    ] = None
    max_latency_ms: Annotated[
        int,
        setting(
            "Latency limit",
            "Adds replicas while the mean latency is above it, whatever the metric says. KEDA only.",
            unit="ms",
            ge=0,
            le=600_000,
            fix="Use 1 to 600000 ms, or remove it.",
            is_derived=True,
            is_empty_zero=True,
        ),
    ] = 0
    max_gpu_memory_percent: Annotated[
        int,
        setting(
            "GPU memory limit",
            "Adds replicas while a replica uses more of its GPU's memory. KEDA only.",
            unit="%",
            ge=0,
            le=99,
            fix="Use 1 to 99, or remove it.",
            is_derived=True,
            is_empty_zero=True,
        ),
    ] = 0
    sqs: Annotated[SqsQueue | None, setting("SQS queue", "Also scales on its messages.")] = None
    kafka: Annotated[
        KafkaTopic | None, setting("Kafka topic", "Also scales on the lag of its consumers.")
    ] = None
    redis: Annotated[RedisList | None, setting("Redis list", "Also scales on its length.")] = None

    @property
    def job_queues(self) -> dict[str, SqsQueue | KafkaTopic | RedisList]:
        """The queues outside the cluster whose length scales, by the name of their field."""
        queues = {"sqs": self.sqs, "kafka": self.kafka, "redis": self.redis}
        return {name: queue for name, queue in queues.items() if queue is not None}

    def fill_defaults(self, *, is_range: bool, engine: Engine) -> Self:
        """Fill omitted fields with their defaults. Which autoscaler a range of replicas gets
        depends on the cluster (deployments/spec/domain/default_scaling.py). KEDA's is one that
        the engine has.
        """
        if not self.kind and is_range:
            return self
        kind = self.kind or FIXED
        metric = self.metric or self._default_metric(kind, engine)
        target = self.target or DEFAULT_TARGETS.get((kind, metric), 0)
        if (kind, metric, target) == (self.kind, self.metric, self.target):
            return self
        return self.replace(kind=kind, metric=metric, target=target)

    def _default_metric(self, kind: ScalingKind, engine: Engine) -> Metric:
        if kind == KEDA and not (self.office_hours or self.job_queues):
            return "first-token" if engine in WITHOUT_QUEUE_METRICS else "queue"
        return "cpu" if kind == HPA else "concurrency" if kind == KNATIVE else ""
