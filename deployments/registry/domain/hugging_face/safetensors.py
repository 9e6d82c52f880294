"""Read the header of a safetensors file: the tensors that it describes, without their bytes.

Format: huggingface/safetensors, safetensors/src/tensor.rs (`read_metadata`, `validate`, `bitsize`): 8 bytes
of length (little-endian), that many bytes of JSON with `dtype`, `shape` and `data_offsets` of each tensor,
then the bytes, which the tensors cover without gaps up to the end of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import NotServable, quote

# Upstream takes 100 MB; the headers of the largest models have a few hundred kilobytes a file.
MAX_HEADER_BYTES: Final = 16 * 10**6
MAX_TENSORS: Final = 500_000
_LENGTH_BYTES: Final = 8
_METADATA: Final = "__metadata__"
# An object whose first value is an object, in a header that goes on behind the first bytes of the file.
_BEGIN: Final = re.compile(rb'\{\s*"(?:[^"\\\x00-\x1f]|\\.)*("\s*:\s*\{|\Z)')
_UPSTREAM_LIMIT: Final = 100 * 10**6
# Bits of one element.
BITS: Final[Mapping[str, int]] = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
}
_ADVICE: Final = "Save the model again with save_pretrained, and upload the whole folder."


def may_be_safetensors(head: bytes) -> bool:
    """Return whether the first bytes of a file may be those of safetensors. Its length may begin as a pickle
    does (0x80, 0x02).
    """
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    header = head[_LENGTH_BYTES : _LENGTH_BYTES + length]
    if not 2 <= length <= _UPSTREAM_LIMIT:
        return False
    if len(header) < length:
        return _BEGIN.match(header) is not None
    try:
        rows = json.loads(header)
    except (ValueError, RecursionError):
        return False
    return isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values())


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file, as its header describes it."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    size_bytes: int


@dataclass(slots=True)
class Tensors:
    """The tensors of one or several files by name. `placed` has the file of a name that several files have."""

    rows: dict[str, StoredTensor] = field(default_factory=dict)
    placed: Mapping[str, str] = field(default_factory=dict)

    def add(self, name: str, tensor: StoredTensor) -> None:
        other = self.rows.get(name)
        if other is not None:
            file = self.placed.get(name)
            if other.file == tensor.file or file not in (other.file, tensor.file):
                raise NotServable(
                    f"The tensor {quote(name)} is in {other.file} and in {tensor.file}. {_ADVICE}"
                )
            if file == other.file:
                return
        self.rows[name] = tensor

    def bytes_by_dtype(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for tensor in self.rows.values():
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size_bytes
        return sizes


def read_header(artifact: Artifact, path: str, tensors: Tensors) -> None:
    """Add the tensors of a file. Reads its header only. Raises NotServable."""
    size = artifact.sizes[path]
    length = int.from_bytes(artifact.read(path, 0, _LENGTH_BYTES), "little")
    if size < _LENGTH_BYTES or length > size - _LENGTH_BYTES:
        raise _damaged(path, f"its header would end behind the file ({length:,} bytes)")
    if length > MAX_HEADER_BYTES:
        raise _damaged(path, f"its header has {length:,} bytes; the limit is {MAX_HEADER_BYTES:,}")
    end = 0
    rows = _rows(artifact, path, length)
    for _, name, row in sorted(
        ((_span(path, name, row), name, row) for name, row in rows), key=lambda item: item[:2]
    ):
        end = _add(tensors, path, name, row, end)
    if _LENGTH_BYTES + length + end != size:
        raise _damaged(
            path, f"its tensors end at byte {_LENGTH_BYTES + length + end:,} of {size:,}"
        )
    if len(tensors.rows) > MAX_TENSORS:
        raise NotServable(f"The folder has more than {MAX_TENSORS:,} tensors. {_ADVICE}")


def _rows(artifact: Artifact, path: str, length: int) -> list[tuple[str, Any]]:
    try:
        header = json.loads(artifact.read(path, _LENGTH_BYTES, length))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its header is not JSON") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    return [(name, row) for name, row in header.items() if name != _METADATA]


def _span(path: str, name: str, row: Any) -> tuple[int, int]:
    match row:
        case {"dtype": str(), "shape": list(), "data_offsets": [int(start), int(end)]}:
            return start, end
    raise _damaged(path, f"the entry of {quote(name)} is incomplete")


def _add(tensors: Tensors, path: str, name: str, row: Mapping[str, Any], end: int) -> int:
    """Return the end of the tensor's bytes, which begin where those before it end."""
    dtype, (start, stop) = row["dtype"], row["data_offsets"]
    if dtype not in BITS:
        raise _damaged(path, f"{quote(name)} has the unknown dtype {quote(dtype)}")
    elements = 1
    for size in row["shape"]:
        if type(size) is not int or not 0 <= size < 2**63:
            raise _damaged(path, f"{quote(name)} has a shape that is not one")
        elements *= size
        if elements >= 2**63:
            raise _damaged(path, f"{quote(name)} is larger than any file")
    if start != end or stop < start or (stop - start) * 8 != elements * BITS[dtype]:
        raise _damaged(path, f"the offsets of {quote(name)} do not match its shape")
    tensors.add(name, StoredTensor(path, dtype, tuple(row["shape"]), elements, stop - start))
    return int(stop)


def _damaged(path: str, why: str) -> NotServable:
    return NotServable(f"{path} is damaged or cut off: {why}. {_ADVICE}")
