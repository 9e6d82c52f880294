"""The problems of a config.pbtxt that someone brings, by field, and their fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import schema
from deployments.registry.domain.triton_config.text import ConfigProblem, Path
from deployments.spec.domain import triton_values
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core import definitions

_REMOVE: Final = "Remove it."
# Fields of a config that a deployment has no setting for, and why.
_NOT_SETTINGS: Final = {
    "ensemble_scheduling": "An ensemble is a model of its own, not a setting of one.",
    "model_operations": "It loads a library into the server.",
    "model_repository_agents": "Agents change the files that were verified.",
    "runtime": "It names a library of the backend.",
    "cc_model_filenames": "A version has one file.",
    "default_model_filename": "The file has the name that the backend expects.",
    "batch_input": "Only backends that read ragged batches use it.",
    "batch_output": "Only backends that read ragged batches use it.",
    "model_metrics": "The portal reads Triton's own buckets.",
}
_SINGLE_GROUP: Final = (
    "All GPUs of a pod have the same instances.",
    "Use one instance_group, with count for each GPU and the indices in gpus.",
)
# Settings -> where a text states them.
_SOURCES: Final[tuple[tuple[str, Path], ...]] = (
    ("batching.max_batch_size", ("max_batch_size",)),
    ("batching.preferred_batch_sizes", ("dynamic_batching", "preferred_batch_size")),
    ("batching.max_queue_delay_us", ("dynamic_batching", "max_queue_delay_microseconds")),
    ("batching", ("dynamic_batching",)),
    ("triton.queue.priority_levels", ("dynamic_batching", "priority_levels")),
    ("triton.queue.default_priority_level", ("dynamic_batching", "default_priority_level")),
    ("triton.queue.priority_", ("dynamic_batching", "priority_queue_policy")),
    ("triton.queue", ("dynamic_batching", "default_queue_policy")),
    ("triton.sequence.max_idle_us", ("sequence_batching", "max_sequence_idle_microseconds")),
    ("triton.sequence.states", ("sequence_batching", "state")),
    ("triton.sequence.start_input", ("sequence_batching", "control_input")),
    (
        "triton.sequence.preferred_batch_sizes",
        ("sequence_batching", "oldest", "preferred_batch_size"),
    ),
    ("triton.sequence.max_candidate", ("sequence_batching", "oldest", "max_candidate_sequences")),
    ("triton.sequence", ("sequence_batching",)),
    ("triton.instances.gpus", ("instance_group", 0, "gpus")),
    ("triton.instances", ("instance_group", 0, "rate_limiter")),
    ("instances_per_gpu", ("instance_group", 0, "count")),
    ("triton.warm_up", ("model_warmup",)),
    ("triton.optimization", ("optimization",)),
    ("precision", ("optimization", "execution_accelerators")),
    ("triton.response_cache_mib", ("response_cache",)),
    ("triton.decoupled", ("model_transaction_policy",)),
    ("triton.version", ("version_policy",)),
    ("triton.parameters", ("parameters",)),
    ("triton.metric_tags", ("metric_tags",)),
)


def source_of(setting: str) -> tuple[str, Path]:
    """Return the label of a setting that was refused, and its place in a text."""
    fields = definitions.deep_fields_of(ServingSpec)
    label = fields[setting].label if setting in fields else setting
    paths = (path for start, path in _SOURCES if setting.startswith(start))
    return label, next(paths, ())


def describe(path: Path, theirs: Any, ours: Any) -> ConfigProblem:
    """Return the field at `path` of `theirs`, which `ours`, made of the settings read from it, has not."""
    described = _DESCRIPTIONS.get(str(path[0]), _not_a_setting)(path, theirs, ours)
    return described or _not_a_setting(path, theirs, ours)


def additions(config: Any, signature: Signature) -> Iterator[ConfigProblem]:
    """Yield what Triton would decide silently, and what is written instead."""
    group = config.instance_group[0] if config.instance_group else None
    if group is None or group.kind == schema.group_kind("KIND_AUTO"):
        yield ConfigProblem(
            "instance_group states no kind: Triton would fall back to the CPU without a GPU.",
            "KIND_GPU is used.",
            is_blocking=False,
        )
    if signature.is_batched and not config.max_batch_size and not config.input:
        yield ConfigProblem(
            "max_batch_size is missing.",
            f"The version's value, {signature.max_batch_size}, is used.",
            is_blocking=False,
        )
    for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
        if accelerator.name == "tensorrt" and "trt_engine_cache_path" not in accelerator.parameters:
            yield ConfigProblem(
                "Without a cache TensorRT builds its engines again at every start.",
                "A cache on the pod's volume is added.",
                is_blocking=False,
            )
    for state in config.sequence_batching.state:
        if not state.initial_state:
            yield ConfigProblem(
                f"{state.input_name} has no initial state: Triton would pass uninitialised memory.",
                "Zeros are used.",
                is_blocking=False,
            )


def _not_a_setting(path: Path, _theirs: Any, _ours: Any) -> ConfigProblem:
    dotted = ".".join(str(part) for part in path)
    reason = _NOT_SETTINGS.get(str(path[0]), "A deployment has no setting for it.")
    return ConfigProblem(f"{dotted}: {reason}", _REMOVE)


def _name(_path: Path, _theirs: Any, ours: Any) -> ConfigProblem:
    return ConfigProblem(
        f'The name is "{ours.name}" here: Triton takes the name of the directory.',
        is_blocking=False,
    )


def _backend(_path: Path, _theirs: Any, ours: Any) -> ConfigProblem:
    return ConfigProblem(f'The version is served by the backend "{ours.backend}".', _REMOVE)


def _dynamic_batching(path: Path, _theirs: Any, _ours: Any) -> ConfigProblem | None:
    if len(path) == 1:
        return ConfigProblem(
            "The model does not support batching: max_batch_size is 0.",
            "Remove dynamic_batching, or declare batching on the version's page.",
        )
    if "priority_queue_policy" in path:
        return ConfigProblem(
            "The levels share timeout_action and allow_timeout_override of default_queue_policy.",
            "Use the same in both.",
        )
    return None


def _instance_group(path: Path, _theirs: Any, _ours: Any) -> ConfigProblem | None:
    return ConfigProblem(*_SINGLE_GROUP) if len(path) == 2 else None


def _optimization(path: Path, _theirs: Any, _ours: Any) -> ConfigProblem | None:
    if "precision_mode" not in path:
        return None
    return ConfigProblem("TensorRT converts to FP16 or BF16 here.", "Use one of them.")


def _tensor(path: Path, theirs: Any, ours: Any) -> ConfigProblem:
    kind, index = str(path[0]), int(path[1])
    entry = getattr(theirs, kind)[index]
    known = {item.name: item for item in getattr(ours, kind)}
    if len(path) == 2:
        names = ", ".join(known) or "none"
        return ConfigProblem(
            f'The model has no {kind} "{entry.name}".', f"Use the {kind}s of the version: {names}."
        )
    real = known[entry.name]
    if path[2] == "data_type":
        dtype = schema.dtype_of(real.data_type)
        return ConfigProblem(
            f"{entry.name} is TYPE_{dtype} in the model's file.", f"Use TYPE_{dtype}."
        )
    if path[2] != "dims":
        return ConfigProblem(f"{entry.name}.{path[2]}: The signature does not have it.", _REMOVE)
    return _dims(list(entry.dims), list(real.dims), entry.name, ours.max_batch_size)


def _dims(stated: list[int], real: list[int], name: str, max_batch_size: int) -> ConfigProblem:
    if max_batch_size and _fits(stated[1:], real):
        return ConfigProblem(
            f"The dims of {name} include the batch dimension, which Triton adds because max_batch_size "
            f"is {max_batch_size}.",
            f"Use dims: {real}.",
        )
    if _fits(stated, real):
        return ConfigProblem(
            f"The model takes dims {real} for {name}; these are used.", is_blocking=False
        )
    return ConfigProblem(
        f"The dims of {name} are {real} in the model's file.", f"Use dims: {real}."
    )


def _fits(stated: list[int], real: list[int]) -> bool:
    """Whether the model takes tensors of these dims."""
    return len(stated) == len(real) and all(
        own in (-1, value) for value, own in zip(stated, real, strict=True)
    )


def _max_batch_size(_path: Path, _theirs: Any, ours: Any) -> ConfigProblem:
    if not ours.max_batch_size:
        return ConfigProblem(
            "The model does not support batching.",
            "Use max_batch_size: 0, or declare batching on the version's page.",
        )
    return ConfigProblem(
        f"The version takes batches up to {ours.max_batch_size}.",
        f"Use at most {ours.max_batch_size}, or declare another size on the version's page.",
    )


def _parameter(path: Path, _theirs: Any, ours: Any) -> ConfigProblem:
    name = str(path[1])
    if name in ours.parameters:
        value = ours.parameters[name].string_value
        return ConfigProblem(
            f'The version sets {name} to "{value}".', "Remove it or use this value."
        )
    known = ", ".join(sorted(triton_values.PARAMETERS_OF.get(ours.backend, ())))
    return ConfigProblem(
        f"{name} is not a parameter that only tunes the backend.",
        f"Use one of {known}." if known else _REMOVE,
    )


_DESCRIPTIONS: Final[Mapping[str, Callable[[Path, Any, Any], ConfigProblem | None]]] = {
    "name": _name,
    "backend": _backend,
    "platform": _backend,
    "input": _tensor,
    "output": _tensor,
    "max_batch_size": _max_batch_size,
    "dynamic_batching": _dynamic_batching,
    "instance_group": _instance_group,
    "optimization": _optimization,
    "parameters": _parameter,
}
