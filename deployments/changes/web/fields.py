"""The fields of a request that may be left as they are: scaling, batching, placement, and the rest.

Their texts are checked by the serving spec itself, so a wrong one is told in the same words here,
in YAML and in the API.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms

from deployments.domain import spec_parts
from deployments.web.request_body import OFF, ON

_SWITCHES: Final = ((ON, "on"), (OFF, "off"))
SCALING: Final = (
    ("", "Usual"),
    (spec_parts.FIXED, "Fixed"),
    (spec_parts.HPA, "CPU or memory"),
    (spec_parts.KEDA, "KEDA"),
    (spec_parts.KNATIVE, "Knative"),
)
SCALING_DETAILS: Final = {
    "": "by CPU once the most is above the fewest",
    spec_parts.FIXED: "always the fewest",
    spec_parts.HPA: "HPA on the pods' own load",
    spec_parts.KEDA: "queue, latency, office hours, SQS; down to zero",
    spec_parts.KNATIVE: "requests under way; holds them while it starts",
}
METRICS: Final = {
    "cpu": ("CPU", "%"),
    "memory": ("Memory", "%"),
    "queue": ("Requests waiting in Triton", "per replica"),
    "latency": ("Latency, by Triton", "ms"),
    "gateway-latency": ("Latency at the gateway", "ms"),
    "sqs": ("Messages in SQS", "per replica"),
    "concurrency": ("Requests under way", "per replica"),
    "rps": ("Requests a second", "per replica"),
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
    requests_per_second = _number("Expected requests", "Leave it empty when you do not know.", "/s")

    hugging_face_id = _text(
        "Hugging Face id", "Qwen/Qwen3-8B, best with :commit so that it stays the same."
    )
    llm_artifact = _text("Or own weights", "pvc://claim/path or oci://registry/image:tag.")
    parameters_millions = _number(
        "Parameters",
        "8,030 for a model of 8 billion: sizes the GPU and how long it may load.",
        "million",
    )
    context_tokens = _number("Longest context", "Empty: the model's own.", "tokens")
    concurrency = _number("Requests at once", "Empty: vLLM's own choice.")
    kv_cache_dtype = _choice(
        "KV cache", [(name, name) for name in spec_parts.KV_CACHE_DTYPES], "fp8 halves it."
    )
    memory_percent = _number("GPU memory for vLLM", "", "%")
    nodes = _number("Nodes", "Above 1 splits the layers over as many pods.")
    prefix_caching = _switch("Prefix caching", "Prompts that begin alike are computed once.")

    scaling = _choice("Autoscaling", SCALING)
    metric = _choice("Watches", [("", "what is usual"), *((n, w[0]) for n, w in METRICS.items())])
    target = _number("Target", "Empty: what is usual for it.")
    to_zero = _switch("Scale to zero", "No replica and no cost while nobody asks.")
    cooldown = _number("Quiet time", "Without work for so long before scaling down.", "seconds")
    sqs_queue_url = _text("SQS queue", "Its URL; KEDA counts its messages.")
    office_hours = _switch("Office hours", "Keeps replicas up while people work.")
    hours_start = _text("From", "", placeholder="07:00")
    hours_end = _text("To", "", placeholder="20:00")
    hours_days = _text("Days", "As in cron: 1-5 is Monday to Friday.")
    hours_timezone = _text("Time zone", "", placeholder="Europe/Berlin")
    hours_replicas = _number("Replicas then")

    dynamic_batching = _switch("Dynamic batching", "Requests that wait together run together.")
    queue_delay = _number("Queue delay", "A lone request waits so long for company.", "µs")
    batch_sizes = _text("Preferred batch sizes", "Only for TensorRT plans: 4, 8, 16.")
    instances = _number("Instances per GPU", "Copies of the model; each takes its memory.")
    warm_up = _switch("Warm up", "Runs once before it takes traffic: no slow first request.")
    precision = _choice(
        "Precision", [("original", "as in the file"), ("fp16", "fp16"), ("bf16", "bf16")]
    )

    capacity = _choice(
        "Nodes",
        [("on-demand", "on-demand"), ("spot", "spot, may be taken away"), ("any", "either")],
        "Spot is cheaper; a replica gets two minutes' notice.",
    )
    priority_class = _text("Priority class", "Empty: the cluster's default.")
    spread_zones = _switch(
        "Spread over zones", "Where it can be had; it never keeps a pod waiting."
    )

    model_cache = _choice(
        "Model cache",
        [("none", "none"), ("cluster", "by KServe on the nodes")],
        "A second start on the same node then reads no S3.",
    )
    shm_size = _text("Shared memory", "Of /dev/shm, counted as the pod's: 1Gi.")
    service_account = _text(
        "Service account", "Empty: the portal's own, with the cluster's role (IRSA)."
    )
    storage_secret = _text(
        "Storage credentials", "A Secret with S3 keys; empty: as the cluster is set up."
    )
    network_policy = _switch("Network policy", "Only the gateway and metrics reach the pods.")
    strict_mtls = _switch("Strict mTLS", "Refuses calls from outside the mesh.")
    service_monitor = _switch("ServiceMonitor", "Prometheus scrapes Triton's metrics.")
    packed_1 = _choice("First", [], "Another model of the team, ready to serve.")
    packed_2 = _choice("Second", [])
    packed_3 = _choice("Third", [], "The API takes up to eight, each with settings of its own.")
    transformer_image = _text("Transformer image", "Runs before and after the model.")
    explainer_image = _text("Explainer image", "Answers why, beside the model.")
