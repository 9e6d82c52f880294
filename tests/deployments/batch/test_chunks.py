"""Chunks hold each row of the input once, whatever the rows, the blocks and the sizes are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.batch.domain import chunks
from deployments.batch.domain.chunks import Chunk
from portal.core.definitions import Rejected

LINES = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")),
        st.sampled_from([b"", b"  ", b"\r", b"\t\r", b'{"a": 1}\r', b"\x0b\x0c\x85"]),
    ),
    max_size=60,
)


def cut(body: bytes, *, block: int = 1 << 20, target: int = 50, first: int = 1) -> list[Chunk]:
    blocks = [body[start : start + block] for start in range(0, len(body), block)]
    lines = chunks.lines(blocks, "f")
    return list(chunks.cut(lines, file=0, first_row=first, target_bytes=target))


@given(LINES, st.booleans(), st.integers(1, 30), st.integers(1, 200), st.integers(1, 10**9))
def test_each_row_is_in_one_chunk(
    lines: list[bytes], ends: bool, block: int, target: int, first: int
) -> None:
    body = b"\n".join(lines) + (b"\n" if ends else b"")
    rows = [line for line in lines if line.strip()]

    made = cut(body, block=block, target=target, first=first)

    # As a worker reads them.
    read = [
        (chunk.first_row + index, line)
        for chunk in made
        for index, line in enumerate(
            line for line in body[chunk.start : chunk.end].split(b"\n") if line.strip()
        )
    ]
    assert read == [(first + index, line) for index, line in enumerate(rows)]
    assert [chunk.rows for chunk in made] == [
        sum(1 for line in body[c.start : c.end].split(b"\n") if line.strip()) for c in made
    ]
    assert all(a.end == b.start for a, b in pairwise(made))
    assert all(chunk.rows > 0 for chunk in made)


def test_an_input_without_rows_has_no_chunk() -> None:
    assert cut(b"") == []
    assert cut(b"\n \n\t\r\n") == []


def test_a_row_that_is_too_large_is_refused_with_its_line() -> None:
    largest = b"x" * (chunks.MAX_ROW_BYTES - 1) + b"\n"
    assert [chunk.rows for chunk in cut(b"a\n" + largest, target=1)] == [1, 1]
    for body in (b"a\n" + b"x" + largest, b"a\n" + b"x" * (chunks.MAX_ROW_BYTES + 1)):
        with pytest.raises(Rejected) as refusal:
            cut(body, block=1000)
        assert "Line 2 of f is longer than 1,048,576 bytes" in refusal.value.message


def test_chunks_are_small_enough_that_each_worker_gets_some() -> None:
    assert chunks.chunk_bytes(500 * 2**20, workers=8) == 500 * 2**20 // 64
    assert chunks.chunk_bytes(100 * 2**30, workers=1) == 16 * 2**20
    assert chunks.chunk_bytes(10, workers=64) == 32 * 2**10
    assert [c.rows for c in cut(b"1\n" * 25_000, target=10**9)] == [10_000, 10_000, 5_000]
