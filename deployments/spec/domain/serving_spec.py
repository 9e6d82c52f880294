"""The serving spec of a revision: what runs, on which share of a GPU, how many times, and how."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from deployments.errors import Rejected
from deployments.spec.domain import rules, typed_json
from deployments.spec.domain.engines import (
    ENGINES,
    KSERVE_ENGINES,
    KSERVE_TRITON,
    KSERVE_VLLM,
    LLM_ENGINES,
    LLM_SERVICE,
    ONNX_ENGINES,
    PLAIN_ENGINES,
    TRITON,
    TRITON_VLLM,
)
from deployments.spec.domain.parts import (
    FIXED,
    HPA,
    KEDA,
    KNATIVE,
    USUAL_TARGETS,
    Batching,
    Components,
    Llm,
    Network,
    OfficeHours,
    Packed,
    Placement,
    Scaling,
    Storage,
)
from deployments.spec.domain.rules import WHOLE_GPU

__all__ = [
    "ENGINES",
    "FIXED",
    "HPA",
    "KEDA",
    "KNATIVE",
    "KSERVE_ENGINES",
    "KSERVE_TRITON",
    "KSERVE_VLLM",
    "LLM_ENGINES",
    "LLM_SERVICE",
    "ONNX_ENGINES",
    "PLAIN_ENGINES",
    "SCHEMA",
    "TRITON",
    "TRITON_VLLM",
    "WHOLE_GPU",
    "Batching",
    "Components",
    "Llm",
    "Network",
    "OfficeHours",
    "Packed",
    "Placement",
    "Scaling",
    "ServingSpec",
    "Storage",
    "from_json",
]

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpec:
    """Raises Rejected for what no cluster would run. `env` is sorted by name.

    Scaling without a kind is fixed for one number of replicas; for a range it stays empty until the
    cluster is known (deployments/spec/domain/default_scaling.py).
    """

    engine: str
    instance_type: str
    gpu_resource: str = WHOLE_GPU
    gpus: int = 1
    min_replicas: int = 1
    max_replicas: int = 1
    cpu: str = "2"
    memory: str = "8Gi"
    env: tuple[tuple[str, str], ...] = ()
    # The server image, pinned by the portal when the revision is asked for, so that a new default
    # image never restarts what was approved with another one.
    image: str = ""
    schema: int = SCHEMA
    batching: Batching = field(default_factory=Batching)
    instances_per_gpu: int = 1
    warm_up: bool = False
    precision: str = "original"
    # Triton then measures quantiles of its own latencies, which costs throughput.
    summary_latencies: bool = False
    scaling: Scaling = field(default_factory=Scaling)
    placement: Placement = field(default_factory=Placement)
    storage: Storage = field(default_factory=Storage)
    network: Network = field(default_factory=Network)
    llm: Llm | None = None
    components: Components = field(default_factory=Components)
    # Further models of the team in the same Triton processes, for dense packing.
    packed: tuple[Packed, ...] = ()

    def __post_init__(self) -> None:
        found = typed_json.wrong_kinds(self)
        if not found:
            object.__setattr__(self, "env", tuple(sorted(self.env)))
            object.__setattr__(self, "scaling", _completed(self))
            if self.llm is None and self.engine in LLM_ENGINES:
                object.__setattr__(self, "llm", Llm(tensor_parallel=self.gpus))
            found = rules.wrong_values(self) | _wrong_schema(self)
        if found:
            raise Rejected("Check " + ", ".join(sorted(found)) + ".", found)

    @property
    def floor_replicas(self) -> int:
        """How few may run while all is well."""
        return 0 if self.scaling.can_scale_to_zero else self.min_replicas

    @property
    def nodes(self) -> int:
        """Pods that together are one replica."""
        return 1 if self.llm is None else self.llm.nodes

    @property
    def most_gpus(self) -> int:
        """GPUs (or shares) taken when scaled out fully; quotas count these."""
        return self.gpus * self.nodes * self.max_replicas

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "env": dict(self.env), "packed": [asdict(p) for p in self.packed]}


_PARTS: Final = {
    "batching": Batching,
    "scaling": Scaling,
    "placement": Placement,
    "storage": Storage,
    "network": Network,
    "llm": Llm,
    "components": Components,
}


def stored(data: Mapping[str, Any]) -> ServingSpec:
    """As `from_json`, of what a row holds. A spec never changes, so each is read once."""
    return _of_text(json.dumps(data))


@functools.lru_cache(maxsize=4096)
def _of_text(text: str) -> ServingSpec:
    return from_json(json.loads(text))


def from_json(data: Mapping[str, Any]) -> ServingSpec:
    """Raises Rejected for unknown or missing fields and for a schema of a later portal."""
    known = {one.name for one in fields(ServingSpec)}
    found = {
        name: f'There is no field "{name}". Leave it out.' for name in data if name not in known
    }
    found |= {name: f"State {name}." for name in ("engine", "instance_type") if not data.get(name)}
    values = dict(data)
    env = data.get("env", {})
    if isinstance(env, Mapping):
        values["env"] = tuple((str(name), str(value)) for name, value in env.items())
    else:
        found["env"] = 'must map names to values, for example {"NAME": "value"}'
    for name, kind in _PARTS.items():
        if name in data and not (name == "llm" and data[name] is None):
            values[name] = typed_json.read(kind, data[name], name, found)
    if "packed" in data:
        values["packed"] = typed_json.read_list(Packed, data["packed"], "packed", found)
    if found:
        raise Rejected("Check " + ", ".join(sorted(found)) + " of the spec.", found)
    return ServingSpec(**values)


def _completed(spec: ServingSpec) -> Scaling:
    """The scaling with what is usual in place of what was left out."""
    scaling = spec.scaling
    if not scaling.kind:
        if spec.min_replicas >= spec.max_replicas:
            scaling = replace(scaling, kind=FIXED)
        else:
            return scaling
    if not scaling.metric:
        metric = {HPA: "cpu", KNATIVE: "concurrency"}.get(scaling.kind, "")
        if scaling.kind == KEDA and not scaling.office_hours:
            metric = "sqs" if scaling.sqs_queue_url else "queue"
        scaling = replace(scaling, metric=metric)
    if not scaling.target:
        usual = USUAL_TARGETS.get((scaling.kind, scaling.metric), 0)
        scaling = replace(scaling, target=usual)
    return scaling


def _wrong_schema(spec: ServingSpec) -> dict[str, str]:
    if spec.schema == SCHEMA:
        return {}
    return {"schema": f"Use spec schema {SCHEMA}."}
