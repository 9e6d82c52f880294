"""An example of a row, written by the signature of a version: in JSON lines, and in CSV. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from deployments.batch.domain import csv_files, csv_rows
from deployments.batch.domain.csv_files import Column
from deployments.registry.domain.signatures import Signature, Tensor
from portal.core.definitions import Rejected

MOST_INPUTS: Final = 8
MOST_VALUES: Final = 6
_ID: Final = "r1"
_MORE: Final = "…"
_VALUES: Final[Mapping[str, Any]] = {"BYTES": "text", "BOOL": True}


@dataclass(frozen=True, slots=True)
class RowExamples:
    """A row in both formats. `csv_lines` is empty for a model that reads no CSV. If `is_shortened`, "…" stands for
    further values or inputs.
    """

    json_line: str
    csv_lines: str
    is_shortened: bool


def write_examples(signature: Signature) -> RowExamples | None:
    """Write a row for the signature. Dynamic dimensions are 1. None if the inputs are not known."""
    if not signature.inputs:
        return None
    shapes = [[max(size, 1) for size in signature.wire_dims(one)] for one in signature.inputs]
    is_shortened = len(shapes) > MOST_INPUTS or any(prod(shape) > MOST_VALUES for shape in shapes)
    return RowExamples(
        json_line=_write_json(signature.inputs, shapes),
        csv_lines=_write_csv(signature),
        is_shortened=is_shortened,
    )


def _write_json(inputs: Sequence[Tensor], shapes: Sequence[list[int]]) -> str:
    parts = [
        f'{{"name": {json.dumps(tensor.name)}, "shape": {shape}, '
        f'"datatype": "{tensor.protocol_dtype}", "data": {_list_values(tensor.protocol_dtype, shape)}}}'
        for tensor, shape in zip(inputs[:MOST_INPUTS], shapes, strict=False)
    ]
    parts += [_MORE] if len(inputs) > MOST_INPUTS else []
    return f'{{"id": "{_ID}", "inputs": [{", ".join(parts)}]}}'


def _write_csv(signature: Signature) -> str:
    try:
        columns = csv_files.columns_of_inputs(signature, version="")
    except Rejected:
        return ""
    shown = columns[:MOST_INPUTS]
    more = [_MORE] if len(columns) > MOST_INPUTS else []
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([csv_rows.ID, *(name for name, _, _ in shown), *more])
    writer.writerow([_ID, *(_write_cell(column) for column in shown), *more])
    return lines.getvalue().rstrip("\n")


def _write_cell(column: Column) -> str:
    _, datatype, dims = column
    shape = [max(size, 1) for size in dims]
    if prod(shape) > 1:
        return _list_values(datatype, shape)
    value = _value_of(datatype)
    return value if isinstance(value, str) else json.dumps(value)


def _list_values(datatype: str, shape: Sequence[int]) -> str:
    count = prod(shape)
    values = [json.dumps(_value_of(datatype))] * min(count, MOST_VALUES)
    return f"[{', '.join([*values, *([_MORE] if count > MOST_VALUES else [])])}]"


def _value_of(datatype: str) -> Any:
    return _VALUES.get(datatype, 0.5 if datatype.startswith(("FP", "BF")) else 1)
