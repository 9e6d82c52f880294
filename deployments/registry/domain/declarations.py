"""What the uploader declares of a model's use, for what nobody can read from the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.errors import Rejected
from deployments.registry.domain.input_sizes import LARGEST_DIM
from deployments.registry.domain.signatures import DEFAULT_MAX_BATCH

LARGEST_BATCH: Final = 4096
_MOST_INPUTS: Final = 100
_MOST_DIMS: Final = 16
_LONGEST_NAME: Final = 200
_BETWEEN: Final = re.compile(r"[\sx\u00d7*,]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """`takes_batches` None is not declared: it counts where no trial could show it.

    `largest_inputs` by name, with all dimensions as in the file; -1 is not declared.
    """

    takes_batches: bool | None = None
    largest_batch: int = DEFAULT_MAX_BATCH
    largest_inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "takes_batches": self.takes_batches,
            "largest_batch": self.largest_batch,
            "largest_inputs": {name: list(dims) for name, dims in self.largest_inputs.items()},
        }


def from_json(data: Mapping[str, Any]) -> Declaration:
    """Of what a row holds; an empty one declares nothing."""
    return check(
        takes_batches=data.get("takes_batches"),
        largest_batch=data.get("largest_batch", DEFAULT_MAX_BATCH),
        largest_inputs=data.get("largest_inputs", {}),
    )


def check(
    *, takes_batches: bool | None, largest_batch: int, largest_inputs: Mapping[str, Sequence[int]]
) -> Declaration:
    """Raises Rejected, by field."""
    found = {}
    if not 1 <= largest_batch <= LARGEST_BATCH:
        found["largest_batch"] = f"Enter a batch size from 1 to {LARGEST_BATCH}."
    if len(largest_inputs) > _MOST_INPUTS or any(
        not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() for name in largest_inputs
    ):
        found["largest_inputs"] = f"Enter at most {_MOST_INPUTS} inputs, named as in the file."
    elif not all(_are_dims(dims) for dims in largest_inputs.values()):
        found["largest_inputs"] = (
            f"Write 1 to {_MOST_DIMS} dimensions from 1 to {LARGEST_DIM:,} for each input, or "
            "-1 for a dynamic one: image = 4 x 3 x 960 x 960."
        )
    if found:
        raise Rejected(" ".join(found.values()), found)
    return Declaration(
        takes_batches=takes_batches,
        largest_batch=largest_batch,
        largest_inputs={name: tuple(dims) for name, dims in sorted(largest_inputs.items())},
    )


def read_sizes(text: str) -> dict[str, tuple[int, ...]]:
    """One input a line: image = 4 x 3 x 960 x 960. Raises Rejected."""
    found = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        name, separator, sizes = line.rpartition("=")
        words = [word for word in _BETWEEN.split(sizes.strip()) if word]
        if not separator or not words or not all(re.fullmatch(r"-1|[0-9]{1,9}", w) for w in words):
            message = "Enter one input per line: image = 4 x 3 x 960 x 960."
            raise Rejected(message, {"largest_inputs": message})
        found[name.strip()] = tuple(int(word) for word in words)
    return found


def written_sizes(declared: Declaration) -> str:
    """As `read_sizes` reads it."""
    return "\n".join(
        f"{name} = {' x '.join(map(str, dims))}" for name, dims in declared.largest_inputs.items()
    )


def _are_dims(dims: Sequence[int]) -> bool:
    return 1 <= len(dims) <= _MOST_DIMS and all(
        dim == -1 or 1 <= dim <= LARGEST_DIM for dim in dims
    )
