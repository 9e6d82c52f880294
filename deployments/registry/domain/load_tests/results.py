"""Loading a version in a real Triton before it is ready: what happened and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from deployments.registry.domain.signatures import Signature, Tensor

# The key of the column `signature`.
KEY = "load_test"


class LoadOutcome(StrEnum):
    """The outcome of a load test. NO_RUNTIME, NO_REQUEST, TOO_LARGE and LATE are no verdict about the model."""

    ANSWERED = "answered"
    NOT_ANSWERED = "not_answered"
    NOT_LOADED = "not_loaded"
    CRASHED = "crashed"
    TOO_LARGE = "too_large"
    NO_RUNTIME = "no_runtime"
    # It loads, and nothing was sent: no request could be generated, or only ones that are too large.
    NO_REQUEST = "no_request"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class LoadTest:
    """The result of a load test. Memory is the peak of all processes of the server; latencies are of the first
    generated request and the median of five more. `outputs` as the v2 protocol states them.
    """

    outcome: LoadOutcome
    detail: str = ""
    load_seconds: float = 0
    memory_mib: int = 0
    first_ms: float = 0
    warm_ms: float = 0
    # Of the GPUs of its pod; 0 where none was measured.
    gpu_memory_mib: int = 0
    # The cluster that it ran on; empty: the portal's own machine.
    cluster: str = ""
    outputs: tuple[Mapping[str, Any], ...] = ()
    # To the rows of a sample: 32-bit numbers in base64, which are compared and not kept.
    sample_answers: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def without_answers(self) -> LoadTest:
        return replace(self, sample_answers="")

    def describe_load(self) -> str:
        on_gpu = f" and {self.gpu_memory_mib:,} MiB of GPU memory" if self.gpu_memory_mib else ""
        where = f" on cluster {self.cluster}" if self.cluster else ""
        memory = f"{self.memory_mib:,} MiB{on_gpu}{where}"
        return f"loaded in {self.load_seconds:.1f} s with {memory}"

    def describe(self) -> str:
        return (
            f"{self.describe_load()}; answered a generated request in {self.first_ms:.1f} ms, "
            f"then in {self.warm_ms:.1f} ms"
        )


def from_json(data: Mapping[str, Any]) -> LoadTest:
    """Read a load test. Raises TypeError, KeyError or ValueError for another form."""
    outputs = tuple(
        {"name": str(o["name"]), "datatype": str(o["datatype"]), "shape": [*map(int, o["shape"])]}
        for o in data.get("outputs", ())
    )
    return LoadTest(**{**data, "outcome": LoadOutcome(data["outcome"]), "outputs": outputs})


def read_load_test(signature: Mapping[str, Any]) -> LoadTest | None:
    """Read the load test from the column `signature`. None for a version that was not loaded."""
    return from_json(signature[KEY]) if signature.get(KEY) else None


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """An output whose answer has another type or shape than the model declares, both as text."""

    name: str
    answered: str
    declared: str

    def describe(self) -> str:
        return f"{self.name} is {self.answered}, and {self.declared} in the signature"


def compare_outputs(result: LoadTest, signature: Signature) -> Iterator[OutputDifference]:
    """Yield the outputs of an answer to a request of one item that differ from the signature. A model may leave
    an output out. Runtimes serve such a model: ONNX Runtime only warns of a declared shape that is wrong.
    """
    declared = {tensor.name: tensor for tensor in signature.outputs}
    for output in result.outputs:
        tensor = declared.get(output["name"])
        if tensor is not None and not _is_as_declared(output, tensor, signature):
            dims = ", ".join(str(dim) for dim in signature.wire_dims(tensor))
            shape = ", ".join(str(dim) for dim in output["shape"])
            yield OutputDifference(
                tensor.name,
                f"{output['datatype']} [{shape}]",
                f"{tensor.protocol_dtype} [{dims}]",
            )


def _is_as_declared(output: Mapping[str, Any], tensor: Tensor, signature: Signature) -> bool:
    dims = signature.wire_dims(tensor)
    if signature.is_batched:
        dims = (-1, *dims[1:])
    return (
        output["datatype"] == tensor.protocol_dtype
        and len(output["shape"]) == len(dims)
        and all(dim in (-1, size) for dim, size in zip(dims, output["shape"], strict=True))
    )
