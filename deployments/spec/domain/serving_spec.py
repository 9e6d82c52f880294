"""The serving spec of a revision: what runs, on which GPU share, how many times, and how.

A field is defined here, or in the module of its part, and nowhere else: reading, REST, the form of a
new deployment and its review follow from the definition. `engines` says which engines use a field,
`unsupported` what to do with the others, `group` where the form shows it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from deployments.spec.domain import node_selection, rules
from deployments.spec.domain.applicability import limit_to_engines
from deployments.spec.domain.engines import (
    ENGINES,
    KSERVE_ENGINES,
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    KSERVE_TRITON,
    KSERVE_VLLM,
    LLM_ENGINES,
    LLM_SERVICE,
    ONNX_ENGINES,
    OPENAI_ENGINES,
    PLAIN_ENGINES,
    TRITON,
    TRITON_ENGINES,
    TRITON_VLLM,
    Engine,
)
from deployments.spec.domain.llm import Llm
from deployments.spec.domain.model_settings import (
    AdditionalModel,
    Batching,
    InstancesPerGpu,
    ModelPrecision,
    Triton,
    WarmUp,
)
from deployments.spec.domain.placement.catalogue import Placement
from deployments.spec.domain.placement.settings.instance_types import InstanceType
from deployments.spec.domain.pod_settings import (
    Cpu,
    EnvironmentVariables,
    Memory,
    Network,
    Storage,
    TerminationGrace,
)
from deployments.spec.domain.scaling import (
    FIXED,
    HPA,
    KEDA,
    KNATIVE,
    OfficeHours,
    Scaling,
)
from deployments.spec.domain.triton_settings import TritonSettings
from portal.core import definitions
from portal.core.definitions import Definition, setting

__all__ = [
    "ENGINES",
    "FIXED",
    "HPA",
    "KEDA",
    "KNATIVE",
    "KSERVE_ENGINES",
    "KSERVE_SGLANG",
    "KSERVE_TENSORRT_LLM",
    "KSERVE_TRITON",
    "KSERVE_VLLM",
    "LLM_ENGINES",
    "LLM_SERVICE",
    "ONNX_ENGINES",
    "OPENAI_ENGINES",
    "PLAIN_ENGINES",
    "SCHEMA",
    "TRITON",
    "TRITON_VLLM",
    "WHOLE_GPU",
    "AdditionalModel",
    "Batching",
    "Llm",
    "Network",
    "OfficeHours",
    "Placement",
    "Scaling",
    "ServingSpec",
    "Storage",
]

SCHEMA: Final = 1
WHOLE_GPU: Final = "nvidia.com/gpu"
MAX_REPLICAS: Final = 100
MAX_GPUS: Final = 16


class ServingSpec(Definition):
    """The spec of a revision: engine, GPUs, replicas and settings. A setting that is left out has its default."""

    engine: Annotated[
        Engine,
        setting(
            "Engine",
            "What serves the model, and which Kubernetes objects run it.",
            choices={
                KSERVE_TRITON: "KServe · Triton",
                TRITON: "Triton",
                KSERVE_VLLM: "KServe · vLLM",
                KSERVE_SGLANG: "KServe · SGLang",
                KSERVE_TENSORRT_LLM: "KServe · TensorRT-LLM",
                TRITON_VLLM: "Triton · vLLM",
                LLM_SERVICE: "KServe · LLM service",
            },
        ),
    ]
    instance_type: InstanceType
    gpu_resource: Annotated[
        str,
        setting(
            "GPU resource",
            "A whole GPU, a shared one, a MIG slice or a Neuron device, as the node names it.",
            pattern=r"nvidia\.com/(gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb(\.me)?)|aws\.amazon\.com/neuron",
            max_length=60,
            fix="Use nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb or aws.amazon.com/neuron.",
        ),
    ] = WHOLE_GPU
    gpus: Annotated[
        int,
        setting(
            "GPUs",
            "Number of the GPU resource per replica.",
            ge=1,
            le=MAX_GPUS,
            fix=f"Use 1 to {MAX_GPUS} GPUs per replica.",
        ),
    ] = 1
    min_replicas: Annotated[
        int,
        setting(
            "Min replicas",
            "Always running and always billed.",
            ge=1,
            le=MAX_REPLICAS,
            fix=f"Use 1 to {MAX_REPLICAS} replicas. To scale to zero, set "
            "scaling.can_scale_to_zero.",
        ),
    ] = 1
    max_replicas: Annotated[
        int,
        setting(
            "Max replicas",
            "Upper limit of the autoscaler. Quota counts this number.",
            ge=1,
            le=MAX_REPLICAS,
            fix=f"Use at least min_replicas and at most {MAX_REPLICAS}.",
        ),
    ] = 1
    cpu: Cpu = "2"
    memory: Memory = "8Gi"
    env: EnvironmentVariables = ()
    # Pinned so that a new default image never restarts what was approved with another one.
    image: Annotated[
        str,
        setting(
            "Image", "The server image, pinned when the revision is requested.", read_only=True
        ),
    ] = ""
    schema_version: Annotated[
        int,
        setting(
            "Schema",
            "Version of this format.",
            ge=SCHEMA,
            le=SCHEMA,
            fix=f"Use spec schema {SCHEMA}.",
            alias="schema",
            read_only=True,
        ),
    ] = SCHEMA
    batching: Annotated[
        Batching,
        setting("Batching", "How requests become batches.", group="batching"),
        limit_to_engines(
            ONNX_ENGINES, "{engine} uses continuous batching. Remove the batching settings."
        ),
    ] = Batching()
    instances_per_gpu: Annotated[
        InstancesPerGpu,
        limit_to_engines(
            ONNX_ENGINES, "{engine} uses the whole GPU share for one instance. Use 1."
        ),
    ] = 1
    warm_up: Annotated[
        WarmUp, limit_to_engines(ONNX_ENGINES, "{engine} warms up on its own. Turn warm-up off.")
    ] = False
    precision: ModelPrecision = "original"
    triton: Annotated[
        Triton,
        limit_to_engines(ONNX_ENGINES, "{engine} does not use these settings. Remove triton."),
    ] = TritonSettings()
    termination_grace_seconds: TerminationGrace = 0
    summary_latencies: Annotated[
        bool,
        setting(
            "Latency summaries",
            "p95 from Triton. Costs up to a third of the throughput.",
            group="advanced",
        ),
        limit_to_engines(
            TRITON_ENGINES,
            "Only Triton reports them, and {engine} does not use Triton. Turn it off.",
        ),
    ] = False
    scaling: Annotated[
        Scaling, setting("Autoscaling", "How many replicas run.", group="scaling")
    ] = Scaling()
    placement: Annotated[
        Placement, setting("Placement", "Which nodes take the pods.", group="placement")
    ] = Placement()
    storage: Annotated[Storage, setting("Storage", "How pods get the model.", group="advanced")] = (
        Storage()
    )
    network: Annotated[Network, setting("Network", "Who can reach the pods.", group="advanced")] = (
        Network()
    )
    llm: Annotated[
        Llm | None,
        setting("Language model", "The weights and their limits.", group="llm"),
        limit_to_engines(LLM_ENGINES, "{engine} does not serve language models. Remove llm."),
    ] = None
    additional_models: Annotated[
        tuple[AdditionalModel, ...],
        Field(strict=False),
        setting(
            "Multi-model serving",
            "Further models of the team in the same Triton processes, each at /v2/models/{model} of "
            "the deployment's address.",
        ),
        limit_to_engines(
            ONNX_ENGINES,
            "{engine} uses the whole GPU share for one model. Use "
            + " or ".join(ONNX_ENGINES)
            + ".",
        ),
    ] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Fill in what depends on other fields, then check the rules across fields."""
        is_range = self.min_replicas < self.max_replicas
        scaling = self.scaling.fill_defaults(is_range=is_range, engine=self.engine)
        object.__setattr__(self, "scaling", scaling)
        if self.llm is None and self.engine in LLM_ENGINES:
            with definitions.inside("llm"):
                object.__setattr__(self, "llm", Llm(tensor_parallel=self.gpus))
        definitions.check(rules.rules_of(self))
        return self

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The instance types that take its pods, the preferred one first."""
        return (
            self.instance_type,
            *node_selection.split_types(self.placement.other_instance_types),
        )

    @property
    def floor_replicas(self) -> int:
        """The fewest replicas that may run while all is well."""
        return 0 if self.scaling.can_scale_to_zero else self.min_replicas

    @property
    def nodes(self) -> int:
        """The number of pods that together are one replica."""
        return 1 if self.llm is None else self.llm.nodes

    @property
    def split_nodes(self) -> int:
        """The number of pods that share one copy of a model. Pods of an LLMInferenceService have whole copies."""
        return self.nodes if self.engine == KSERVE_VLLM else 1

    @property
    def most_gpus(self) -> int:
        """The number of GPUs (or GPU shares) when scaled out fully; quotas count these."""
        return self.gpus * self.nodes * self.max_replicas

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


def read_stored(data: Mapping[str, Any]) -> ServingSpec:
    """Read the spec of a row. Equal specs are parsed once."""
    return _parse(json.dumps(dict(data)))


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ServingSpec:
    return ServingSpec.from_json(json.loads(text))
