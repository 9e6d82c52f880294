"""The signature of a model: inputs, outputs and batching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

DEFAULT_MAX_BATCH: Final = 32
# The fact of a signature: how many numbers its weights have.
PARAMETER_COUNT: Final = "parameter_count"
# The fact of a signature: the names of a classifier's classes, in the order of its scores. A single score is
# that of the second class.
CLASS_NAMES: Final = "class_names"
# A dynamic dimension.
ANY: Final = -1
# Triton's dtype without TYPE_ -> bytes of one element. STRING has no fixed size.
BYTES_OF_DTYPE: Final[Mapping[str, int]] = {
    "BOOL": 1,
    "INT8": 1,
    "UINT8": 1,
    "INT16": 2,
    "UINT16": 2,
    "FP16": 2,
    "BF16": 2,
    "INT32": 4,
    "UINT32": 4,
    "FP32": 4,
    "INT64": 8,
    "UINT64": 8,
    "FP64": 8,
    "STRING": 64,
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output. `dims` are as in the file, with the batch dimension; -1 is dynamic. `symbols` are
    their names.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    symbols: tuple[str, ...] = ()

    @property
    def protocol_dtype(self) -> str:
        """The datatype of the v2 inference protocol."""
        return "BYTES" if self.dtype == "STRING" else self.dtype

    def bytes_per_item(self, *, is_batched: bool) -> int:
        """Return the size of an item in bytes. Dynamic dimensions count as 1, so this is a lower bound."""
        dims = self.dims[1:] if is_batched else self.dims
        count = 1
        for dim in dims:
            count *= max(dim, 1)
        return count * BYTES_OF_DTYPE.get(self.dtype, 4)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "dims": list(self.dims)}


def parameter_facts(count: int | None) -> dict[str, int]:
    """Return the number of parameters as facts of a signature. Empty where the files do not tell."""
    return {} if count is None else {PARAMETER_COUNT: count}


@dataclass(frozen=True, slots=True)
class Backend:
    """Triton's backend of a model: its name, the name that it gives the model's file, its parameters.

    `is_file_named`: config.pbtxt has to name the file, which is not the default of the backend.
    `config` is the config.pbtxt that came with the model, empty where the portal writes it.
    """

    name: str = "onnxruntime"
    model_file: str = "model.onnx"
    parameters: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    is_file_named: bool = False


ONNX_RUNTIME: Final = Backend()
# Triton itself runs the steps of an ensemble.
ENSEMBLE: Final = "ensemble"
# The fact with the names of the other models of a version's repository.
FURTHER_MODELS: Final = "further_models"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model. `max_batch_size` 0 means no batching; no dimension is then the batch
    dimension.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    backend: Backend = ONNX_RUNTIME

    @property
    def is_batched(self) -> bool:
        return self.max_batch_size > 0

    def wire_dims(self, tensor: Tensor) -> tuple[int, ...]:
        """Return dimensions in requests and responses. Triton has no empty dims: a scalar per item is [1]."""
        has_items = len(tensor.dims) > int(self.is_batched)
        return tensor.dims if has_items else (*tensor.dims, 1)

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "max_batch_size": self.max_batch_size,
            "backend": asdict(self.backend),
            **self.facts,
        }


def truncate(signature: Signature, count: int) -> Signature:
    """Keep at most `count` inputs and `count` outputs."""
    return replace(signature, inputs=signature.inputs[:count], outputs=signature.outputs[:count])


def from_json(data: Mapping[str, Any]) -> Signature:
    known = {"inputs", "outputs", "max_batch_size", "backend"}
    return Signature(
        inputs=_tensors(data.get("inputs", [])),
        outputs=_tensors(data.get("outputs", [])),
        max_batch_size=int(data.get("max_batch_size", 0)),
        facts={key: value for key, value in data.items() if key not in known},
        backend=Backend(**data["backend"]) if "backend" in data else ONNX_RUNTIME,
    )


def detect_max_batch_size(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
    """Return DEFAULT_MAX_BATCH if all tensors share a dynamic first dimension, otherwise 0.

    Different names of the first dimension mean that it is not a batch dimension; a name that appears
    again in a later dimension is a length. The result is 0 in doubt: no batching is always correct.
    """
    tensors = [*inputs, *outputs]
    if not inputs or not outputs or any(not t.dims or t.dims[0] != ANY for t in tensors):
        return 0
    first_names = {t.symbols[0] for t in inputs if t.symbols and _is_named(t.symbols[0])}
    later_names = {name for t in tensors for name in t.symbols[1:] if _is_named(name)}
    if len(first_names) > 1 or first_names & later_names:
        return 0
    return DEFAULT_MAX_BATCH


def _is_named(symbol: str) -> bool:
    """Return whether a person named the dimension. False for names like unk__12, which exporters generate."""
    return bool(symbol) and not symbol.startswith(("unk__", "?"))


def _tensors(rows: Sequence[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(name=row["name"], dtype=row["dtype"], dims=tuple(row["dims"])) for row in rows
    )
