"""Counters of model servers: short-lived samples, and sums by minute and hour."""

from __future__ import annotations

from django.db import models

from fleet.models.clusters import Cluster, Pod, Workload


class Counters(models.Model):
    """Requests and microseconds as Triton counts them; of language models also tokens, as vLLM does."""

    request_success = models.BigIntegerField(default=0)
    request_failure = models.BigIntegerField(default=0)
    inference_count = models.BigIntegerField(default=0)
    execution_count = models.BigIntegerField(default=0)
    request_duration_us = models.BigIntegerField(default=0)
    queue_duration_us = models.BigIntegerField(default=0)
    compute_input_us = models.BigIntegerField(default=0)
    compute_infer_us = models.BigIntegerField(default=0)
    compute_output_us = models.BigIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    generation_tokens = models.BigIntegerField(default=0)
    # Requests with a first token, and the sum of their times until it.
    first_tokens = models.BigIntegerField(default=0)
    first_token_us = models.BigIntegerField(default=0)
    # Tokens after the first, and the sum of the times between two.
    later_tokens = models.BigIntegerField(default=0)
    later_token_us = models.BigIntegerField(default=0)
    preemptions = models.BigIntegerField(default=0)
    # Neither served nor failed: the client left before the end.
    request_aborted = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


class MetricSample(Counters):
    """One reading of one pod: counts since its model server started."""

    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField(db_index=True)
    # Triton's own p95 of the request time, if summaries are enabled; must not be summed.
    request_p95_us = models.FloatField(null=True)
    pending_requests = models.BigIntegerField(null=True)
    # From DCGM or NVML, 0..1; null if not measured.
    gpu_utilisation = models.FloatField(null=True)
    # Of vLLM: requests in its batch, and the used part of its KV cache, 0..1.
    running_requests = models.BigIntegerField(null=True)
    kv_cache_usage = models.FloatField(null=True)
    # Its cumulative histogram of seconds until the first token, as [upper bound or null, count].
    first_token_times = models.JSONField(null=True)

    class Meta:
        indexes = [models.Index(fields=["pod", "-at"])]

    def __str__(self) -> str:
        return f"{self.pod_id} {self.at:%H:%M:%S}"


class Rollup(Counters):
    """Increases over one period, corrected for counter resets.

    `observed_ms` is the pod time that the increases cover; 0 requests with 0 observed_ms means
    not known, not idle. `gpu_busy_ms` is the time a model executed (compute_infer, once a batch) or, where
    measured, GPU utilisation x time; `gpu_busy_source` says which: "triton", "llm", "dcgm", "nvml".
    """

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField(db_index=True)
    observed_ms = models.BigIntegerField(default=0)
    gpu_busy_ms = models.BigIntegerField(default=0)
    gpu_busy_source = models.CharField(max_length=10, blank=True, default="")

    class Meta:
        abstract = True


class WorkloadMinute(Rollup):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["workload", "start"], name="one_per_minute")]

    def __str__(self) -> str:
        return f"{self.workload_id} {self.start:%H:%M}"


class WorkloadHour(Rollup):
    is_demo = models.BooleanField(default=False)
    # Of its GPUs, from dcgm-exporter; null: not known. `energy_ms` is the GPU time that was measured.
    energy_mj = models.BigIntegerField(null=True)
    energy_ms = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workload", "start"], name="one_per_hour")]

    def __str__(self) -> str:
        return f"{self.workload_id} {self.start:%Y-%m-%d %H}h"


class EnergyReading(models.Model):
    """An hour of a cluster whose energy was read from its Prometheus."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    hour = models.DateTimeField()
    read_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "hour"], name="energy_read_once")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%Y-%m-%d %H}h"


class ScrapeReading(models.Model):
    """The last reading of a cluster's model servers through its Prometheus. There is none without a Prometheus."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="scrape_reading", primary_key=True
    )
    # When it is queried again.
    next_at = models.DateTimeField()
    # When it last answered; null: never.
    read_at = models.DateTimeField(null=True)
    # Pods that it had then.
    pods = models.PositiveIntegerField(default=0)
    # Ids of pods that are read directly until it is queried again; and pods that nothing reads.
    direct_pods = models.JSONField(default=list)
    unread = models.PositiveIntegerField(default=0)
    # Why it did not answer the last time; empty: it did.
    problem = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.read_at}"
