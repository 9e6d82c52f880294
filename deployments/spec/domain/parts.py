"""The parts of a serving spec. Each default is what one would choose without further knowledge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

# A range of replicas without an autoscaler: what the cluster can see decides.
AUTOMATIC: Final = ""
FIXED: Final = "fixed"
HPA: Final = "hpa"
KEDA: Final = "keda"
KNATIVE: Final = "knative"
SCALING_KINDS: Final = (FIXED, HPA, KEDA, KNATIVE)
CAPACITIES: Final = ("on-demand", "spot", "any")
MODEL_CACHES: Final = ("none", "cluster")
# Further models beside a version's own, in one process.
MOST_PACKED: Final = 8
PRECISIONS: Final = ("original", "fp16", "bf16")
KV_CACHE_DTYPES: Final = ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")
# What a replica should hold up to, by the metric that the autoscaler watches.
USUAL_TARGETS: Final = {
    (HPA, "cpu"): 80,
    (HPA, "memory"): 80,
    (KEDA, "queue"): 5,
    (KEDA, "latency"): 200,
    (KEDA, "gateway-latency"): 300,
    (KEDA, "sqs"): 20,
    (KNATIVE, "concurrency"): 4,
    (KNATIVE, "rps"): 50,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Triton's dynamic batching; a lone request waits `max_queue_delay_us` for company."""

    is_dynamic: bool = True
    max_queue_delay_us: int = 0
    # Leave empty unless the model is a TensorRT plan built for these sizes.
    preferred_batch_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A version of another model of the team that the same Triton processes serve, with settings of
    its own.
    """

    model: str
    version: int
    batching: Batching = field(default_factory=Batching)
    instances_per_gpu: int = 1
    warm_up: bool = False
    precision: str = "original"

    @property
    def label(self) -> str:
        return f"{self.model}:{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeHours:
    """`replicas` are kept from `start` to `end` (hh:mm) on `days` (as in cron: 1-5) in `timezone`."""

    timezone: str = "UTC"
    start: str = "07:00"
    end: str = "20:00"
    days: str = "1-5"
    replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """`kind` and `metric` empty and `target` 0 are replaced by what is usual for the rest.

    Targets: cpu and memory percent; queue requests waiting per replica; latency and gateway-latency
    milliseconds; sqs messages per replica; concurrency requests under way per replica; rps.
    """

    kind: str = ""
    metric: str = ""
    target: int = 0
    can_scale_to_zero: bool = False
    # Without work for so long, before the last replica goes.
    cooldown_seconds: int = 300
    office_hours: OfficeHours | None = None
    sqs_queue_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """`spread_zones` asks for it where it can be had; it never keeps a pod waiting."""

    capacity: str = "on-demand"
    priority_class: str = ""
    spread_zones: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """`shm_size` bounds /dev/shm and counts as memory of the pod; empty leaves it unbounded.

    `service_account` and `secret` name ones of the team's namespace that pods read models with;
    empty: the account that the portal makes, with the role or the keys of the cluster's policy.
    """

    model_cache: str = "none"
    shm_size: str = "1Gi"
    service_account: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    strict_mtls: bool = False
    service_monitor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """Weights from Hugging Face, from `artifact` (pvc:// or oci://), or the version's own files.

    `nodes` above 1 splits the layers over as many pods. 0 leaves a number to vLLM.
    A Hugging Face id may end with ":" and the commit, so that the weights stay those approved.
    `parameters_millions` says how large it is, 0 is not known: how long it may load goes by it.
    """

    hugging_face_id: str = ""
    artifact: str = ""
    parameters_millions: int = 0
    tensor_parallel: int = 1
    nodes: int = 1
    max_model_len: int = 0
    gpu_memory_utilization: float = 0.9
    kv_cache_dtype: str = "auto"
    max_num_seqs: int = 0
    prefix_caching: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    transformer_image: str = ""
    explainer_image: str = ""
