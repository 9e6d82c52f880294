"""Generated inputs for a trial run: seeded, valid for most models, and different for each item.

Integers may be indices, so they are small and never negative. Models differ in the sizes and ranges
that they accept, so there is a list of policies to try in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

# Element types of ONNX Runtime, without tensor( ).
_FLOATS: Final = {"float": np.float32, "double": np.float64, "float16": np.float16}
_INTEGERS: Final = {
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
}
# Each item has its own scale, so that a maximum, mean or softmax over the whole batch differs from
# one over a single item.
_SCALES: Final = (1.0, 0.25, 3.0, 0.05, 8.0)
# Valid for models that read text and for models that read numbers.
_TEXTS: Final = ("1", "22", "3", "404", "5")
# bfloat16 is the upper half of a float32; numpy has no type for it.
BFLOAT16: Final = "bfloat16"
# Larger items take too long and too much memory.
MAX_ITEM_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Policy:
    """The sizes and values of generated inputs. `image` and `length` are sizes of dynamic dimensions; integers
    are below `below`.
    """

    image: int
    length: int
    below: int


POLICIES: Final = (
    Policy(image=64, length=8, below=10),
    Policy(image=224, length=16, below=2),
    Policy(image=32, length=1, below=10),
    Policy(image=640, length=128, below=2),
    Policy(image=64, length=8, below=1),
)


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model. `shape` is as ONNX Runtime returns it: sizes, names of dynamic dimensions, None if
    unnamed.
    """

    name: str
    kind: str
    shape: tuple[int | str | None, ...]

    @property
    def is_image(self) -> bool:
        return len(self.shape) >= 4


def inputs_of(session: Any) -> list[Input]:
    return [Input(value.name, kind_of(value), tuple(value.shape)) for value in session.get_inputs()]


def kind_of(value: Any) -> str:
    return str(value.type).removeprefix("tensor(").removesuffix(")")


def can_make(inputs: Sequence[Input]) -> bool:
    kinds = {*_FLOATS, *_INTEGERS, "bool", "string", BFLOAT16}
    return all(tensor.kind in kinds for tensor in inputs)


def make_item(
    inputs: Sequence[Input], policy: Policy, number: int, sizes: Mapping[str, Sequence[int]]
) -> dict[str, Any] | None:
    """Return item `number` of a batch. None if one of its inputs would exceed MAX_ITEM_BYTES.

    `sizes` are declared by input, with the batch dimension; they override those of the policy.
    """
    shapes = shapes_of(inputs, policy, sizes)
    if shapes is None:
        return None
    generator = np.random.default_rng([number, policy.below])
    return {
        tensor.name: _values(tensor.kind, shape, generator, number, policy.below)
        for tensor, shape in zip(inputs, shapes, strict=True)
    }


def shapes_of(
    inputs: Sequence[Input], policy: Policy, sizes: Mapping[str, Sequence[int]] | None = None
) -> list[tuple[int, ...]] | None:
    """Return the shapes of one item, with a batch dimension of 1. `sizes` as in `make_item`. None if an input
    would exceed MAX_ITEM_BYTES.
    """
    sizes_by_name: dict[str, int] = {}
    shapes = []
    for tensor in inputs:
        declared = (sizes or {}).get(tensor.name, ())
        shape = (1, *_dims(tensor, policy, declared, sizes_by_name))
        if int(np.prod(shape, dtype=np.float64)) * 8 > MAX_ITEM_BYTES:
            return None
        shapes.append(shape)
    return shapes


def _dims(
    tensor: Input, policy: Policy, declared: Sequence[int], sizes_by_name: dict[str, int]
) -> tuple[int, ...]:
    """Return all dimensions after the first. A name has the same size wherever it appears."""
    dims = []
    for axis, dim in enumerate(tensor.shape[1:], start=1):
        if isinstance(dim, int) and dim > 0:
            dims.append(dim)
            continue
        size = declared[axis] if axis < len(declared) and declared[axis] > 0 else 0
        size = size or (policy.image if tensor.is_image else policy.length)
        dims.append(sizes_by_name.setdefault(dim, size) if isinstance(dim, str) else size)
    return tuple(dims)


def _values(
    kind: str, shape: tuple[int, ...], generator: np.random.Generator, number: int, below: int
) -> Any:
    if kind == "string":
        indices = generator.integers(0, len(_TEXTS), shape) + number
        return np.array(_TEXTS, dtype=object)[indices % len(_TEXTS)]
    if kind == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if kind in _INTEGERS:
        return generator.integers(0, below, shape).astype(_INTEGERS[kind])
    # Zeros are valid where a number is an index.
    scale = 0.0 if below == 1 else _SCALES[number % len(_SCALES)]
    values = generator.standard_normal(shape, dtype=np.float32) * np.float32(scale)
    if kind == BFLOAT16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(_FLOATS[kind])
