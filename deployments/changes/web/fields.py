"""The fields of a request that may be left as they are: scaling, batching, placement, and the rest.

Their texts are checked by the serving spec itself, so a wrong one is told in the same words here,
in YAML and in the API.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms

from deployments.changes.web.request_body import OFF, ON
from deployments.spec.domain import scaling as parts

_SWITCHES: Final = ((ON, "on"), (OFF, "off"))
SCALING: Final = (
    ("", "Automatic"),
    (parts.FIXED, "Fixed"),
    (parts.HPA, "CPU or memory"),
    (parts.KEDA, "KEDA"),
    (parts.KNATIVE, "Knative"),
)
SCALING_DETAILS: Final = {
    "": "by queue or requests in flight where the cluster has these metrics, otherwise fixed",
    parts.FIXED: "always the minimum",
    parts.HPA: "HPA on pod load",
    parts.KEDA: "queue, latency, office hours, SQS; scales to zero",
    parts.KNATIVE: "requests in flight; queues them during a cold start",
}
METRICS: Final = {
    "cpu": ("CPU", "%"),
    "memory": ("Memory", "%"),
    "queue": ("Requests waiting in Triton", "per replica"),
    "latency": ("Latency (Triton)", "ms"),
    "gateway-latency": ("Latency (gateway)", "ms"),
    "sqs": ("Messages in SQS", "per replica"),
    "concurrency": ("Requests in flight", "per replica"),
    "rps": ("Requests per second", "per replica"),
}


def _text(label: str, help_text: str = "", **attrs: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"spellcheck": "false", **attrs})
    return forms.CharField(
        label=label, required=False, max_length=300, help_text=help_text, widget=widget
    )


def _number(label: str, help_text: str = "", unit: str = "") -> forms.CharField:
    return _text(label, help_text, inputmode="numeric", **{"data-unit": unit})


def _switch(label: str, help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=_SWITCHES, required=False, help_text=help_text)


def _choice(label: str, choices: Any, help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, required=False, help_text=help_text)


class SettingsForm(forms.Form):
    """Fields with right defaults; nobody has to open them."""

    # Load, which the sizing adviser asks for; no part of the request.
    requests_per_second = _number("Expected requests", "Leave empty if not known.", "/s")

    hugging_face_id = _text("Hugging Face id", "For example Qwen/Qwen3-8B. Add :commit to pin it.")
    llm_artifact = _text("Or your own weights", "pvc://claim/path or oci://registry/image:tag.")
    parameters_millions = _number(
        "Parameters",
        "In millions: 8,030 for an 8B model. Used for GPU memory and load time.",
        "million",
    )
    context_tokens = _number("Max context length", "Empty: the model's maximum.", "tokens")
    concurrency = _number("Concurrent requests", "Empty: vLLM's default.")
    kv_cache_dtype = _choice(
        "KV cache",
        [(name, name) for name in ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")],
        "fp8 halves it.",
    )
    memory_percent = _number("GPU memory for vLLM", "", "%")
    nodes = _number("Nodes", "Above 1, layers are split across that many pods.")
    prefix_caching = _switch("Prefix caching", "Shared prompt prefixes are computed once.")

    scaling = _choice("Autoscaling", SCALING)
    metric = _choice("Metric", [("", "default"), *((n, w[0]) for n, w in METRICS.items())])
    target = _number("Target", "Empty: the default.")
    to_zero = _switch("Scale to zero", "No replicas and no cost without traffic.")
    cooldown = _number("Cooldown", "Idle time before scaling down.", "seconds")
    sqs_queue_url = _text("SQS queue", "Queue URL. KEDA counts its messages.")
    office_hours = _switch("Office hours", "Keeps replicas running during these hours.")
    hours_start = _text("From", "", placeholder="07:00")
    hours_end = _text("To", "", placeholder="20:00")
    hours_days = _text("Days", "As in cron: 1-5 is Monday to Friday.")
    hours_timezone = _text("Time zone", "", placeholder="Europe/Berlin")
    hours_replicas = _number("Replicas in these hours")

    dynamic_batching = _switch("Dynamic batching", "Waiting requests run as one batch.")
    queue_delay = _number("Queue delay", "Max wait to fill a batch.", "µs")
    batch_sizes = _text("Preferred batch sizes", "TensorRT plans only, for example 4, 8, 16.")
    instances = _number("Instances per GPU", "Copies of the model. Each needs its own memory.")
    warm_up = _switch("Warm up", "Runs once before traffic, so the first request is not slow.")
    precision = _choice(
        "Precision", [("original", "as in the file"), ("fp16", "fp16"), ("bf16", "bf16")]
    )

    capacity = _choice(
        "Nodes",
        [("on-demand", "on-demand"), ("spot", "spot (can be reclaimed)"), ("any", "either")],
        "Spot is cheaper. Replicas get two minutes' notice.",
    )
    priority_class = _text("Priority class", "Empty: the cluster's default.")
    spread_zones = _switch("Spread over zones", "Best effort. Never blocks scheduling.")

    model_cache = _choice(
        "Model cache",
        [("none", "none"), ("cluster", "by KServe on the nodes")],
        "Restarts on the same node skip S3.",
    )
    shm_size = _text("Shared memory", "Size of /dev/shm, counted as pod memory. For example 1Gi.")
    service_account = _text(
        "Service account", "Empty: the default, with the cluster's IAM role (IRSA)."
    )
    storage_secret = _text(
        "Storage credentials", "A Secret with S3 keys. Empty: the cluster default."
    )
    strict_mtls = _switch("Strict mTLS", "Rejects calls from outside the mesh.")
    service_monitor = _switch("ServiceMonitor", "Prometheus scrapes Triton's metrics.")
    summary_latencies = _switch(
        "Latency summaries", "p95 from Triton. Costs up to a third of the throughput."
    )
    packed_1 = _choice("First", [], "One of the team's ready versions.")
    packed_2 = _choice("Second", [])
    packed_3 = _choice("Third", [], "The API accepts up to eight, each with its own settings.")
    transformer_image = _text("Transformer image", "Runs before and after the model.")
    explainer_image = _text("Explainer image", "Explains the model's answers.")
