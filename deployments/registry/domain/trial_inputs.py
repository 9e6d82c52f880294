"""Inputs to try a model with: seeded, legal for most models, and different from item to item.

Numbers that may be indices stay small and are never negative. Sizes and ranges that one model
refuses another one needs, so that there is a list of policies to go through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

# As ONNX Runtime writes them, without tensor( ).
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
# Values of one item are of one size, and each item has another: what is taken over a whole batch
# (a maximum, a mean, a softmax) then differs from what is taken over an item.
_SCALES: Final = (1.0, 0.25, 3.0, 0.05, 8.0)
# Legal text for models that read words, and for those that read numbers.
_TEXTS: Final = ("1", "22", "3", "404", "5")
# bfloat16 is the upper half of a float32; numpy has no type for it.
BFLOAT16: Final = "bfloat16"
# A model of more than this takes too long to try, and too much memory.
LARGEST_ITEM_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Policy:
    """`image` and `length` are sizes for free dimensions; integers stay below `below`."""

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
    """`shape` as ONNX Runtime tells it: numbers, names of free dimensions, None for unnamed ones."""

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
    return all(one.kind in kinds for one in inputs)


def make_item(
    inputs: Sequence[Input], policy: Policy, number: int, sizes: Mapping[str, Sequence[int]]
) -> dict[str, Any] | None:
    """One item of a batch, number 0, 1, 2 …; None when it would be too large to try.

    `sizes` are declared ones by input, with the batch dimension; they come before the policy's.
    """
    chance = np.random.default_rng([number, policy.below])
    names: dict[str, int] = {}
    item = {}
    for one in inputs:
        shape = (1, *_dims(one, policy, sizes.get(one.name, ()), names))
        if int(np.prod(shape, dtype=np.float64)) * 8 > LARGEST_ITEM_BYTES:
            return None
        item[one.name] = _values(one.kind, shape, chance, number, policy.below)
    return item


def _dims(
    one: Input, policy: Policy, declared: Sequence[int], names: dict[str, int]
) -> tuple[int, ...]:
    """Without the first. A name stands for one size wherever it appears."""
    found = []
    for place, dim in enumerate(one.shape[1:], start=1):
        if isinstance(dim, int) and dim > 0:
            found.append(dim)
            continue
        size = declared[place] if place < len(declared) and declared[place] > 0 else 0
        size = size or (policy.image if one.is_image else policy.length)
        found.append(names.setdefault(dim, size) if isinstance(dim, str) else size)
    return tuple(found)


def _values(
    kind: str, shape: tuple[int, ...], chance: np.random.Generator, number: int, below: int
) -> Any:
    if kind == "string":
        picked = chance.integers(0, len(_TEXTS), shape) + number
        return np.array(_TEXTS, dtype=object)[picked % len(_TEXTS)]
    if kind == "bool":
        return chance.integers(0, 2, shape).astype(bool)
    if kind in _INTEGERS:
        return chance.integers(0, below, shape).astype(_INTEGERS[kind])
    values = chance.standard_normal(shape, dtype=np.float32) * _SCALES[number % len(_SCALES)]
    if kind == BFLOAT16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(_FLOATS[kind])
