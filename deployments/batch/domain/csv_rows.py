"""Rows of CSV files: each column is an input of the model, by name.

It is part of the worker's program too, so it has the standard library only and runs on Python 3.9 and newer.
A column is [name, datatype, shape]: the cell of an input with several elements is their JSON list. A column `id`
that is no input names the request.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

ID = "id"
# The largest values by datatype; a cell outside is no number of it.
INTEGERS = {
    "INT8": (-(2**7), 2**7 - 1),
    "INT16": (-(2**15), 2**15 - 1),
    "INT32": (-(2**31), 2**31 - 1),
    "INT64": (-(2**63), 2**63 - 1),
    "UINT8": (0, 2**8 - 1),
    "UINT16": (0, 2**16 - 1),
    "UINT32": (0, 2**32 - 1),
    "UINT64": (0, 2**64 - 1),
}
FLOATS = ("FP32", "FP64")
# FP16 and BF16 have no form in JSON.
DATATYPES = (*INTEGERS, *FLOATS, "BOOL", "BYTES")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_SHOWN = 40


class BadRow(ValueError):
    """A row that cannot be read. The message names the line and the column."""


def cells_of(text: str) -> list[str]:
    """Return the cells of one record. Raises BadRow if it is not CSV."""
    try:
        # It is one of the whole process: rows have a limit of their own, which is larger.
        csv.field_size_limit(2**31 - 1)
        rows = list(csv.reader([text], strict=True))
    except csv.Error as error:
        raise BadRow(f"it is not CSV: {error}") from None
    return rows[0] if rows else []


def lines_of(content: bytes) -> list[bytes]:
    """Split into lines, with their line feeds. A carriage return ends no line."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def is_open(line: bytes, *, was_open: bool) -> bool:
    """Whether a record goes on in the next line: quotes are closed in pairs."""
    return was_open != (line.count(b'"') % 2 == 1)


def records(lines: Iterable[bytes], first_line: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield records with the number of the line in which each starts, including blank lines between them."""
    parts: list[bytes] = []
    start, within = first_line, False
    for number, line in enumerate(lines, first_line):
        start = start if within else number
        parts.append(line)
        within = is_open(line, was_open=within)
        if not within:
            yield start, b"".join(parts)
            parts = []
    if parts:
        yield start, b"".join(parts)


def request_of(body: bytes, columns: list[Any], line: int) -> dict[str, Any]:
    """Build the request of the inference protocol. Raises BadRow."""
    try:
        cells = cells_of(body.decode().rstrip("\r\n"))
    except UnicodeDecodeError:
        raise BadRow(f"line {line}: it is not UTF-8") from None
    except BadRow as error:
        raise BadRow(f"line {line}: {error}") from None
    if len(cells) != len(columns):
        raise BadRow(f"line {line}: it has {len(cells)} columns, and the header has {len(columns)}")
    request: dict[str, Any] = {"inputs": []}
    for (name, datatype, shape), cell in zip(columns, cells):  # noqa: B905  of one length, and Python 3.9 has no strict
        if datatype is None:
            request["id"] = cell
            continue
        try:
            data = values_of(cell, datatype, shape)
        except BadRow as error:
            raise BadRow(f"line {line}, column {name}: {error}") from None
        tensor = {
            "name": name,
            "shape": fill_shape(shape, data),
            "datatype": datatype,
            "data": data,
        }
        request["inputs"].append(tensor)
    return request


def values_of(cell: str, datatype: str, shape: list[int]) -> list[Any]:
    """Return the value of a cell, or the values of its JSON list. Raises BadRow.

    With a dynamic dimension their number is a multiple of the fixed ones.
    """
    fixed = math.prod(size for size in shape if size != -1)
    is_dynamic = -1 in shape
    if fixed == 1 and not (is_dynamic and cell.lstrip().startswith("[")):
        return [value_of(cell, datatype)]
    try:
        values = json.loads(cell)
    except (ValueError, RecursionError):
        values = None
    flat = list(_flattened(values)) if isinstance(values, list) else []
    is_right = len(flat) % fixed == 0 if is_dynamic else len(flat) == fixed
    if not flat or not is_right or shape.count(-1) > 1:
        raise BadRow(
            f"{_shown(cell)} is not a JSON list of {fixed}{' times n' if is_dynamic else ''} values"
        )
    return [value_of(v if isinstance(v, str) else json.dumps(v), datatype) for v in flat]


def fill_shape(shape: list[int], data: list[Any]) -> list[int]:
    """Replace the dynamic size of a shape by the one that these values have."""
    fixed = math.prod(size for size in shape if size != -1)
    return [len(data) // fixed if size == -1 else size for size in shape]


def value_of(cell: str, datatype: str) -> Any:
    """Convert a cell to a value of the datatype. Raises BadRow if it is none."""
    if datatype == "BYTES":
        return cell
    text = cell.strip()
    try:
        # Python reads 1_000 as a number.
        value = None if "_" in text else _number_of(text.lower(), datatype)
    except ValueError:
        value = None
    if value is None:
        raise BadRow(f"{_shown(cell)} is not {datatype}")
    return value


def _number_of(text: str, datatype: str) -> Any:
    """Convert text to a number or bool. None if it is outside the datatype."""
    if datatype == "BOOL":
        return BOOLEANS.get(text)
    if datatype in INTEGERS:
        least, most = INTEGERS[datatype]
        return int(text) if least <= int(text) <= most else None
    return float(text) if math.isfinite(float(text)) else None


def _flattened(values: list[Any]) -> Any:
    for value in values:
        if isinstance(value, list):
            yield from _flattened(value)
        else:
            yield value


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= _SHOWN else cell[:_SHOWN] + "…")
