"""The uploader's declaration of what the file does not contain: batching, sizes, tensors, a GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.registry.domain import declared_tensors
from deployments.registry.domain.input_sizes import MAX_DIM
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH, Tensor
from portal.core.definitions import Rejected

MAX_BATCH: Final = 4096
_MAX_INPUTS: Final = 100
_MAX_DIMS: Final = 16
_MAX_NAME_LENGTH: Final = 200
_CAPABILITY: Final = re.compile(r"[1-9][0-9]?\.[0-9]")
_SEPARATORS: Final = re.compile(r"[\sx\u00d7*,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The uploader's declaration. `supports_batching` is used only if the batching trial is inconclusive; None
    means not declared.

    `largest_inputs` has all dimensions of an input as in the file; -1 means not declared.
    `inputs` and `outputs` are those of a file that does not state them, with the batch dimension.
    `compute_capability` is that of the GPU which a TensorRT plan was built for, as "8.6"; empty if not declared.
    """

    supports_batching: bool | None = None
    max_batch_size: int = DEFAULT_MAX_BATCH
    largest_inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    compute_capability: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the column. Tensors and compute capability, which most formats have no use for, are left out
        where they are empty.
        """
        tensors = {"inputs": self.inputs, "outputs": self.outputs}
        rows: dict[str, Any] = {
            name: [tensor.to_json() for tensor in declared]
            for name, declared in tensors.items()
            if declared
        }
        if self.compute_capability:
            rows["compute_capability"] = self.compute_capability
        return rows | {
            "supports_batching": self.supports_batching,
            "max_batch_size": self.max_batch_size,
            "largest_inputs": {name: list(dims) for name, dims in self.largest_inputs.items()},
        }


_NOTHING: Final = Declaration().to_json()


def show_declared(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column `declared` as REST shows it: with what is not declared."""
    return from_json(data).to_json() if data else {**_NOTHING, "largest_inputs": {}}


def from_json(data: Mapping[str, Any]) -> Declaration:
    """Read the column `declared` of a version; empty declares nothing."""
    if not data:
        return Declaration()
    return check(
        supports_batching=data.get("supports_batching"),
        max_batch_size=data.get("max_batch_size", DEFAULT_MAX_BATCH),
        largest_inputs=data.get("largest_inputs", {}),
        inputs=declared_tensors.from_json(data.get("inputs", ())),
        outputs=declared_tensors.from_json(data.get("outputs", ())),
        compute_capability=data.get("compute_capability", ""),
    )


def check(
    *,
    supports_batching: bool | None,
    max_batch_size: int,
    largest_inputs: Mapping[str, Sequence[int]],
    inputs: Sequence[Tensor] = (),
    outputs: Sequence[Tensor] = (),
    compute_capability: str = "",
) -> Declaration:
    """Check a declaration. Raises Rejected with the problem of each field."""
    problems = {}
    for name, tensors in (("inputs", inputs), ("outputs", outputs)):
        if problem := declared_tensors.problem_with(tensors):
            problems[name] = problem
    if compute_capability and not _CAPABILITY.fullmatch(compute_capability):
        problems["compute_capability"] = "Enter the compute capability as 7.5 or 12.0."
    if not 1 <= max_batch_size <= MAX_BATCH:
        problems["max_batch_size"] = f"Enter a batch size from 1 to {MAX_BATCH}."
    if len(largest_inputs) > _MAX_INPUTS or any(
        not 0 < len(name) <= _MAX_NAME_LENGTH or not name.isprintable() for name in largest_inputs
    ):
        problems["largest_inputs"] = f"Enter at most {_MAX_INPUTS} inputs, named as in the file."
    elif not all(_are_dims(dims) for dims in largest_inputs.values()):
        problems["largest_inputs"] = (
            f"Write 1 to {_MAX_DIMS} dimensions from 1 to {MAX_DIM:,} for each input, or "
            "-1 for a dynamic one: image = 4 x 3 x 960 x 960."
        )
    if problems:
        raise Rejected(" ".join(problems.values()), problems)
    return Declaration(
        supports_batching=supports_batching,
        max_batch_size=max_batch_size,
        largest_inputs={name: tuple(dims) for name, dims in sorted(largest_inputs.items())},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        compute_capability=compute_capability,
    )


def parse_sizes(text: str) -> dict[str, tuple[int, ...]]:
    """Parse lines like `image = 4 x 3 x 960 x 960`. Raises Rejected."""
    sizes_by_input = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        name, separator, sizes = line.rpartition("=")
        parts = [part for part in _SEPARATORS.split(sizes.strip()) if part]
        if not separator or not parts or not all(re.fullmatch(r"-1|[0-9]{1,9}", w) for w in parts):
            message = "Enter one input per line: image = 4 x 3 x 960 x 960."
            raise Rejected(message, {"largest_inputs": message})
        sizes_by_input[name.strip()] = tuple(int(part) for part in parts)
    return sizes_by_input


def format_sizes(declared: Declaration) -> str:
    """Format sizes: the inverse of `parse_sizes`."""
    return "\n".join(
        f"{name} = {' x '.join(map(str, dims))}" for name, dims in declared.largest_inputs.items()
    )


def _are_dims(dims: Sequence[int]) -> bool:
    return 1 <= len(dims) <= _MAX_DIMS and all(dim == -1 or 1 <= dim <= MAX_DIM for dim in dims)
