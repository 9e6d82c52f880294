"""The largest input sizes of a model: declared by the uploader, otherwise defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.registry.domain.signatures import Signature, Tensor

# For images (four or more dimensions) and for texts, audio and rows.
DEFAULT_IMAGE_SIZE: Final = 640
DEFAULT_LENGTH: Final = 512
MAX_DIM: Final = 2**24


@dataclass(frozen=True, slots=True)
class InputSizes:
    """The dimensions of every input. `assumed` names inputs with dimensions that were not declared."""

    dims: Mapping[str, tuple[int, ...]]
    assumed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sizes as text, for example "image 4 x 3 x 960 x 960"."""
        return ", ".join(
            f"{name} {' x '.join(map(str, dims)) or '1'}" for name, dims in self.dims.items()
        )


def largest(signature: Signature, declared: Mapping[str, Sequence[int]]) -> InputSizes:
    """Return the largest sizes of all inputs. The first dimension of a batched model is its max batch size,
    even if declared otherwise.
    """
    dims, assumed = {}, []
    for tensor in signature.inputs:
        declared_dims = declared.get(tensor.name, ())
        sizes, is_assumed = _dims(tensor, declared_dims, signature.max_batch_size)
        dims[tensor.name] = sizes
        if is_assumed:
            assumed.append(tensor.name)
    return InputSizes(dims, tuple(assumed))


def _dims(tensor: Tensor, declared_dims: Sequence[int], batch: int) -> tuple[tuple[int, ...], bool]:
    sizes, is_assumed = [], False
    for place, dim in enumerate(tensor.dims):
        if dim >= 0:
            sizes.append(dim)
        elif place == 0 and batch:
            sizes.append(batch)
        elif place < len(declared_dims) and declared_dims[place] > 0:
            sizes.append(declared_dims[place])
        else:
            is_assumed = True
            sizes.append(_default_dim(tensor, place))
    return tuple(sizes), is_assumed


def _default_dim(tensor: Tensor, place: int) -> int:
    if place == 0 and len(tensor.dims) > 1:
        # The batch dimension of a model without batching.
        return 1
    return DEFAULT_IMAGE_SIZE if len(tensor.dims) >= 4 else DEFAULT_LENGTH


def problems_with(signature: Signature, declared: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Return contradictions between declared sizes and the file, by input."""
    known = {tensor.name: tensor for tensor in signature.inputs}
    problems = {}
    for name, dims in declared.items():
        tensor = known.get(name)
        if tensor is None:
            problems[name] = (
                f"The file has no input {name}. Its inputs are {', '.join(sorted(known)[:5])}."
            )
        elif len(dims) != len(tensor.dims):
            problems[name] = (
                f"{name} has {len(tensor.dims)} dimensions in the file, not {len(dims)}."
            )
        elif any(mine >= 0 and size > 0 and mine != size for mine, size in zip(tensor.dims, dims)):  # noqa: B905  same length
            problems[name] = f"{name} is {_format_shape(tensor)} in the file."
    return problems


def _format_shape(tensor: Tensor) -> str:
    return " x ".join("any" if dim < 0 else str(dim) for dim in tensor.dims)
