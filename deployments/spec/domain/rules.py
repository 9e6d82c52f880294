"""What is wrong with a spec, told per field with the fix; the same for every engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from deployments.spec.domain import engine_rules, environment_variables
from deployments.spec.domain.engines import ENGINES
from deployments.spec.domain.parts import (
    AUTOMATIC,
    CAPACITIES,
    KV_CACHE_DTYPES,
    MODEL_CACHES,
    PRECISIONS,
    SCALING_KINDS,
    Llm,
    Packed,
)

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

WHOLE_GPU: Final = "nvidia.com/gpu"
# What is right, and what to say where it is not.
Rule = tuple[str, bool, str]

_MOST_GPUS = 16
_MOST_REPLICAS = 100
_MOST_DELAY_US = 1_000_000
# More than any machine has; what the cluster's largest node has is asked of the cluster.
_MOST_CORES = 1024
_MOST_GIB = 32 * 1024
_CPU = re.compile(r"[1-9][0-9]{0,6}m?")
_MEMORY = re.compile(r"[1-9][0-9]{0,7}(Mi|Gi)")
_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb(\.me)?)")
_INSTANCE_TYPE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,38}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_HUGGING_FACE_ID = re.compile(
    r"[A-Za-z0-9][-\w.]{0,95}/[A-Za-z0-9][-\w.]{0,95}(:[\w][-\w.]{0,63})?"
)
_ARTIFACT = re.compile(r"(pvc|oci)://[a-z0-9][-a-zA-Z0-9._/:@]{0,250}")


def wrong_values(spec: ServingSpec) -> dict[str, str]:
    """Empty when a cluster could run it. Kinds have been checked before."""
    general = [*_general(spec), *_tuning(spec), *_surroundings(spec)]
    for index, one in enumerate(spec.packed):
        general += _tuning(one, f"packed.{index}.")
    if spec.llm is not None:
        general += _llm(spec.llm)
    found = _broken(general)
    if "engine" not in found:
        general.append(_env(spec))
        found = _broken(engine_rules.rules_of(spec)) | _broken(general)
    return found


def _env(spec: ServingSpec) -> Rule:
    problem = environment_variables.problem_with(spec.env, spec.engine)
    return "env", not problem, problem


def _broken(rules: Iterable[Rule]) -> dict[str, str]:
    return {name: fix for name, is_right, fix in rules if not is_right}


def _general(spec: ServingSpec) -> list[Rule]:
    most = _MOST_GPUS if spec.gpu_resource == WHOLE_GPU else 1
    return [
        ("engine", spec.engine in ENGINES, f"Use one of {', '.join(ENGINES)}."),
        (
            "instance_type",
            bool(_INSTANCE_TYPE.fullmatch(spec.instance_type)),
            "Enter an instance type of the cluster, for example g5.xlarge.",
        ),
        (
            "gpu_resource",
            bool(_GPU_RESOURCE.fullmatch(spec.gpu_resource)),
            "Use nvidia.com/gpu, nvidia.com/gpu.shared or nvidia.com/mig-1g.10gb.",
        ),
        (
            "cpu",
            _is_cpu(spec.cpu),
            f"Use whole cores or millicores, up to {_MOST_CORES} cores: 2 or 1500m.",
        ),
        ("memory", _is_memory(spec.memory), f"Use Mi or Gi, up to {_MOST_GIB}Gi: 8Gi or 512Mi."),
        ("gpus", 1 <= spec.gpus <= most, f"Use 1 to {most} {spec.gpu_resource} per replica."),
        (
            "min_replicas",
            1 <= spec.min_replicas <= _MOST_REPLICAS,
            (
                f"Use 1 to {_MOST_REPLICAS} replicas. To scale to zero, set "
                "scaling.can_scale_to_zero."
            ),
        ),
        (
            "max_replicas",
            spec.min_replicas <= spec.max_replicas <= _MOST_REPLICAS,
            f"Use at least min_replicas ({spec.min_replicas}) and at most {_MOST_REPLICAS}.",
        ),
    ]


def _is_cpu(text: str) -> bool:
    if _CPU.fullmatch(text) is None:
        return False
    millicores = int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return millicores <= _MOST_CORES * 1000


def _is_memory(text: str) -> bool:
    if _MEMORY.fullmatch(text) is None:
        return False
    mib = int(text[:-2]) * (1024 if text.endswith("Gi") else 1)
    return mib <= _MOST_GIB * 1024


def _tuning(spec: ServingSpec | Packed, path: str = "") -> list[Rule]:
    batching = spec.batching
    sizes = batching.preferred_batch_sizes
    return [
        (
            f"{path}batching.max_queue_delay_us",
            0 <= batching.max_queue_delay_us <= _MOST_DELAY_US,
            f"Use 0 to {_MOST_DELAY_US} microseconds.",
        ),
        (
            f"{path}batching.preferred_batch_sizes",
            len(sizes) <= 8 and all(1 <= size <= 4096 for size in sizes),
            "Use at most eight sizes from 1 to 4096.",
        ),
        (
            f"{path}batching.is_dynamic",
            batching.is_dynamic or not (batching.max_queue_delay_us or sizes),
            "Queue delay and preferred sizes need dynamic batching. Turn it on.",
        ),
        (
            f"{path}instances_per_gpu",
            1 <= spec.instances_per_gpu <= 16,
            "Use 1 to 16 instances. Each loads its own copy of the model into GPU memory.",
        ),
        (
            f"{path}precision",
            spec.precision in PRECISIONS,
            f"Use one of {', '.join(PRECISIONS)}.",
        ),
    ]


def _surroundings(spec: ServingSpec) -> list[Rule]:
    placement, storage, kind = spec.placement, spec.storage, spec.scaling.kind
    return [
        (
            "scaling.kind",
            kind in (AUTOMATIC, *SCALING_KINDS),
            f"Use one of {', '.join(SCALING_KINDS)}.",
        ),
        (
            "placement.capacity",
            placement.capacity in CAPACITIES,
            f"Use one of {', '.join(CAPACITIES)}.",
        ),
        (
            "placement.priority_class",
            not placement.priority_class or bool(_LABEL.fullmatch(placement.priority_class)),
            "Enter a PriorityClass of the cluster, or leave it empty.",
        ),
        (
            "storage.model_cache",
            storage.model_cache in MODEL_CACHES,
            f"Use one of {', '.join(MODEL_CACHES)}.",
        ),
        (
            "storage.shm_size",
            not storage.shm_size or _is_memory(storage.shm_size),
            "Use Mi or Gi: 1Gi or 512Mi.",
        ),
        (
            "storage.service_account",
            not storage.service_account or bool(_OBJECT.fullmatch(storage.service_account)),
            "Enter a ServiceAccount of the team's namespace, or leave it empty.",
        ),
        (
            "storage.secret",
            not storage.secret or bool(_OBJECT.fullmatch(storage.secret)),
            "Enter a Secret of the team's namespace, or leave it empty.",
        ),
    ]


def _llm(llm: Llm) -> list[Rule]:
    return [
        (
            "llm.hugging_face_id",
            not llm.hugging_face_id or bool(_HUGGING_FACE_ID.fullmatch(llm.hugging_face_id)),
            "Use organisation/model or organisation/model:commit, for example Qwen/Qwen3-8B.",
        ),
        (
            "llm.artifact",
            not llm.artifact or bool(_ARTIFACT.fullmatch(llm.artifact)),
            "Use pvc://claim/path or oci://registry/image:tag.",
        ),
        (
            "llm.parameters_millions",
            0 <= llm.parameters_millions <= 10_000_000,
            "Enter millions: 8030 for 8 billion, or 0 if unknown.",
        ),
        (
            "llm.tensor_parallel",
            llm.tensor_parallel in (1, 2, 4, 8, 16),
            "Use 1, 2, 4, 8 or 16. It must divide the number of attention heads.",
        ),
        ("llm.nodes", 1 <= llm.nodes <= 16, "Use 1 to 16 nodes."),
        (
            "llm.max_model_len",
            llm.max_model_len == 0 or 128 <= llm.max_model_len <= 2_000_000,
            "Use 128 to 2000000 tokens, or 0 for the model's own length.",
        ),
        (
            "llm.gpu_memory_utilization",
            0.1 <= llm.gpu_memory_utilization <= 0.98,
            "Use 0.1 to 0.98 of the GPU's memory for weights, activations and KV cache.",
        ),
        (
            "llm.kv_cache_dtype",
            llm.kv_cache_dtype in KV_CACHE_DTYPES,
            f"Use one of {', '.join(KV_CACHE_DTYPES)}.",
        ),
        (
            "llm.max_num_seqs",
            0 <= llm.max_num_seqs <= 4096,
            "Use up to 4096 requests at a time, or 0 for vLLM's default.",
        ),
    ]
