"""The largest sizes that a model is served with: declared by people, assumed where nobody said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.registry.domain.signatures import Signature, Tensor

# For images (four dimensions and more), and for texts, sound and rows.
ASSUMED_IMAGE: Final = 640
ASSUMED_LENGTH: Final = 512
LARGEST_DIM: Final = 2**24


@dataclass(frozen=True, slots=True)
class InputSizes:
    """Every input with all its dimensions. `assumed` names the inputs of which nobody declared all."""

    dims: Mapping[str, tuple[int, ...]]
    assumed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """image 4 x 3 x 960 x 960"""
        return ", ".join(
            f"{name} {' x '.join(map(str, dims)) or '1'}" for name, dims in self.dims.items()
        )


def largest(signature: Signature, declared: Mapping[str, Sequence[int]]) -> InputSizes:
    """A declared first dimension of a model that takes batches gives way to the largest batch."""
    dims, assumed = {}, []
    for tensor in signature.inputs:
        stated = declared.get(tensor.name, ())
        found, is_assumed = _dims(tensor, stated, signature.max_batch_size)
        dims[tensor.name] = found
        if is_assumed:
            assumed.append(tensor.name)
    return InputSizes(dims, tuple(assumed))


def _dims(tensor: Tensor, stated: Sequence[int], batch: int) -> tuple[tuple[int, ...], bool]:
    found, is_assumed = [], False
    for place, dim in enumerate(tensor.dims):
        if dim >= 0:
            found.append(dim)
        elif place == 0 and batch:
            found.append(batch)
        elif place < len(stated) and stated[place] > 0:
            found.append(stated[place])
        else:
            is_assumed = True
            found.append(_assumed(tensor, place))
    return tuple(found), is_assumed


def _assumed(tensor: Tensor, place: int) -> int:
    if place == 0 and len(tensor.dims) > 1:
        # Rows of a model that takes no batches: as few as may be, for want of any knowledge.
        return 1
    return ASSUMED_IMAGE if len(tensor.dims) >= 4 else ASSUMED_LENGTH


def problems_with(signature: Signature, declared: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """By input, what of the declared sizes the file contradicts."""
    known = {tensor.name: tensor for tensor in signature.inputs}
    found = {}
    for name, dims in declared.items():
        tensor = known.get(name)
        if tensor is None:
            found[name] = (
                f"The file has no input {name}. Its inputs are {', '.join(sorted(known)[:5])}."
            )
        elif len(dims) != len(tensor.dims):
            found[name] = f"{name} has {len(tensor.dims)} dimensions in the file, not {len(dims)}."
        elif any(mine >= 0 and size > 0 and mine != size for mine, size in zip(tensor.dims, dims)):  # noqa: B905  same length
            found[name] = f"{name} is {_written(tensor)} in the file."
    return found


def _written(tensor: Tensor) -> str:
    return " x ".join("any" if dim < 0 else str(dim) for dim in tensor.dims)
