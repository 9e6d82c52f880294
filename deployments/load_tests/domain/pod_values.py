"""Generated values for the pod of a load test, whose program this text begins (job.py)."""

from __future__ import annotations

import array
import math
import random
import struct

BLOCK = 4096
INTEGERS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64")
CODES = dict(zip(INTEGERS, "bBhHiIqQ"))  # noqa: B905  not in Python 3.9
TEXTS = ("1", "22", "3", "404", "5")


def values_of(datatype: str, shape: list[int], below: int, seed: int) -> bytes:
    """Return a block of random values, repeated to the size of the tensor."""
    chosen = random.Random(seed)  # noqa: S311  values of a trial
    count = math.prod(shape)
    block = min(count, BLOCK)
    if datatype == "BYTES":
        texts = [chosen.choice(TEXTS).encode() for _ in range(count)]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if datatype == "BOOL":
        made = bytes(chosen.randrange(2) for _ in range(block))
    elif datatype in CODES:
        made = array.array(
            CODES[datatype], [chosen.randrange(below) for _ in range(block)]
        ).tobytes()
    else:
        # Zeros are valid where a number is an index.
        spread = 0 if below == 1 else 1
        made = b"".join(float_bytes(datatype, chosen.gauss(0, spread)) for _ in range(block))
    width = len(made) // max(block, 1)
    return (made * (-(-count // max(block, 1))))[: count * width]


def float_bytes(datatype: str, value: float) -> bytes:
    if datatype == "BF16":
        # The upper half of a float32.
        return struct.pack("<f", value)[2:]
    return struct.pack({"FP16": "<e", "FP64": "<d"}.get(datatype, "<f"), value)
