"""Requests of Triton's warm-up with data of their own: a file for each input in the model's `warmup/`.

Triton runs a sample as a batch of equal items, so a file has the first item of a request and its sample the
number of items.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from deployments.registry.domain import object_keys
from deployments.registry.domain.signatures import Signature

_NUMBERS: Final[Mapping[str, str]] = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}


@dataclass(frozen=True, slots=True)
class WarmUpInput:
    """An input of a warm-up sample. `dims` are without the batch. `file` names its content, so that it never
    changes.
    """

    name: str
    dims: tuple[int, ...]
    content: bytes

    @property
    def file(self) -> str:
        return f"{object_keys.SETTINGS_PREFIX}{hashlib.sha256(self.content).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class WarmUpSample:
    name: str
    batch_size: int
    inputs: tuple[WarmUpInput, ...]


def sample_of(name: str, request: Mapping[str, Any], signature: Signature) -> WarmUpSample:
    """Make a sample of a request: a body of the v2 inference protocol that fits the signature."""
    batch_sizes = [int(row["shape"][0]) for row in request["inputs"] if signature.is_batched]
    inputs = tuple(_input(row, is_batched=signature.is_batched) for row in request["inputs"])
    return WarmUpSample(name, max(batch_sizes, default=0), inputs)


def files_of(samples: Iterable[WarmUpSample]) -> dict[str, bytes]:
    return {item.file: item.content for sample in samples for item in sample.inputs}


def _input(row: Mapping[str, Any], *, is_batched: bool) -> WarmUpInput:
    dims = tuple(int(size) for size in row["shape"][int(is_batched) :])
    content = _encode(row["datatype"], row["data"][: prod(dims)])
    return WarmUpInput(str(row["name"]), dims or (1,), content)


def _encode(datatype: str, values: Sequence[Any]) -> bytes:
    """Encode values as Triton reads raw input: little-endian, in row-major order; texts with their length
    before them.
    """
    if datatype == "BYTES":
        texts = [str(value).encode() for value in values]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if datatype == "BF16":
        # The upper half of a float32.
        return (np.array(values, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return np.array(values, _NUMBERS[datatype]).tobytes()
