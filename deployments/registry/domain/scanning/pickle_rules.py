"""Rules for pickles, wherever they are: a file, a member of an archive, an array of objects."""

from __future__ import annotations

import io
from pathlib import PurePosixPath
from typing import IO, Any, Final

import numpy as np

from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.pickles import known_globals, opening, symbolic
from deployments.registry.domain.pickles.opening import CannotOpen
from deployments.registry.domain.scanning import content
from deployments.registry.domain.scanning.findings import Findings

_NUMPY: Final = b"\x93NUMPY"
_format: Any = np.lib.format
_LONGEST_NAME: Final = 100


def may_be_pickled(name: str, head: bytes) -> bool:
    """Whether it has to be read: an array, or what begins as a pickle does."""
    is_array = PurePosixPath(name).suffix == ".npy" or head.startswith(_NUMPY)
    return is_array or content.is_marked_pickle(head) or _calls(head)


def scan(file: IO[bytes], size: int, head: bytes, *, is_pickle: bool, findings: Findings) -> None:
    """Scan a file for pickles. `is_pickle` False means only what unpickling it would call counts, because any
    bytes are valid.
    """
    if head.startswith(_NUMPY):
        _scan_array(file, size, findings)
        return
    try:
        opened, length = opening.expand(file, size) if is_pickle else (file, size)
    except CannotOpen as error:
        findings.cannot_read(str(error))
        return
    _scan_stream(opened, length, is_pickle=is_pickle, findings=findings)


def _scan_stream(file: IO[bytes], size: int, *, is_pickle: bool, findings: Findings) -> None:
    reading = symbolic.read(file, size=size)
    for name in reading.names if is_pickle else reading.calls:
        if not known_globals.is_known(name):
            findings.runs(printable(name)[:_LONGEST_NAME])
    if is_pickle and reading.problem:
        findings.cannot_read(printable(reading.problem))


def _scan_array(file: IO[bytes], size: int, findings: Findings) -> None:
    """Scan an array by NumPy's own reader of the header, which evaluates literals only."""
    try:
        version = _format.read_magic(file)
        read = _format.read_array_header_1_0 if version == (1, 0) else _format.read_array_header_2_0
        _, _, dtype = read(file)
    except (ValueError, EOFError, KeyError, TypeError, OverflowError, SyntaxError) as error:
        findings.cannot_read(f"the header of the array is damaged: {printable(str(error))[:80]}")
        return
    if dtype.hasobject:
        _scan_stream(file, size, is_pickle=True, findings=findings)


def _calls(head: bytes) -> bool:
    """Whether bytes without a mark call something as a pickle of protocol 0 or 1 would."""
    return bool(head[:1] in b"(c]}") and bool(symbolic.read(io.BytesIO(head), size=len(head)).calls)
