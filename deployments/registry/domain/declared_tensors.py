"""Inputs and outputs that the uploader declares, for formats whose files do not state them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from deployments.registry.domain.input_sizes import MAX_DIM
from deployments.registry.domain.signatures import ANY, BYTES_OF_DTYPE, Tensor
from portal.core.definitions import Rejected

EXAMPLE: Final = "image = FP32 -1 x 3 x 224 x 224"
_MAX_TENSORS: Final = 100
_MAX_DIMS: Final = 16
_MAX_NAME: Final = 200
_LINE: Final = re.compile(r"(?P<name>.+?)\s*[=:]\s*(?P<dtype>[A-Za-z]+[0-9]*)\s+(?P<dims>.+)")
_SEPARATORS: Final = re.compile(r"[\sx\u00d7*,\[\]]+")


def parse(text: str, *, field: str) -> tuple[Tensor, ...]:
    """Parse lines like EXAMPLE. Raises Rejected."""
    rows = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _LINE.fullmatch(line)
        parts = [part for part in _SEPARATORS.split(match["dims"]) if part] if match else []
        if match is None or not all(re.fullmatch(r"-1|[0-9]{1,9}", part) for part in parts):
            message = f"Enter one tensor per line: {EXAMPLE}."
            raise Rejected(message, {field: message})
        dims = tuple(int(part) for part in parts)
        rows.append(Tensor(match["name"].strip(), match["dtype"].upper(), dims))
    return tuple(rows)


def format_lines(tensors: Iterable[Tensor]) -> str:
    """Format tensors as lines: the inverse of `parse`."""
    return "\n".join(f"{t.name} = {t.dtype} {' x '.join(map(str, t.dims))}" for t in tensors)


def from_json(rows: Sequence[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(Tensor(row["name"], row["dtype"], tuple(row["dims"])) for row in rows)


def problem_with(tensors: Sequence[Tensor]) -> str:
    """Say why the tensors cannot be written into a configuration. Empty if they can."""
    names = [tensor.name for tensor in tensors]
    if len(names) > _MAX_TENSORS or len(set(names)) < len(names):
        return f"Declare at most {_MAX_TENSORS} tensors, each once."
    if any(not 0 < len(name) <= _MAX_NAME or not name.isprintable() for name in names):
        return f"Use names of 1 to {_MAX_NAME} printable characters."
    unknown = [tensor.dtype for tensor in tensors if tensor.dtype not in BYTES_OF_DTYPE]
    if unknown:
        known = ", ".join(BYTES_OF_DTYPE)
        return f"{unknown[0][:20]} is not a data type of Triton. Use one of {known}."
    if not all(_are_dims(tensor.dims) for tensor in tensors):
        return f"Write 1 to {_MAX_DIMS} dimensions from 1 to {MAX_DIM:,}, or -1 for a dynamic one."
    return ""


def _are_dims(dims: Sequence[int]) -> bool:
    return 1 <= len(dims) <= _MAX_DIMS and all(dim == ANY or 1 <= dim <= MAX_DIM for dim in dims)
