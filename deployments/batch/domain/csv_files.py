"""CSV files as the input of a job: what their header and their first rows must be. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from deployments.batch.domain import chunks, csv_rows
from deployments.batch.domain.csv_rows import BadRow
from deployments.registry.domain.signatures import Signature
from portal.core.definitions import Rejected

# More are not read twice: a wrong file is known by then, and the workers check the rest.
CHECKED_ROWS: Final = 1000
_LISTED: Final = 20
# [name, datatype, shape]; a null datatype: the id of the request.
Column = list[Any]


def records(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield records with the number of their first line, as csv_rows.records does.

    Raises Rejected for one that is too large, such as one whose quotes are never closed.
    """
    size, first = 0, 1

    def counted() -> Iterator[bytes]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size > chunks.MAX_ROW_BYTES:
                raise _rejected(
                    f"Line {first:,} of {name}: the record is longer than {chunks.MAX_ROW_BYTES:,} bytes. Is a quote "
                    "not closed?"
                )
            yield line

    for line, record in csv_rows.records(counted()):
        size, first = 0, line + max(1, record.count(b"\n"))
        yield line, record


def columns_of(header: bytes, signature: Signature, *, name: str, version: str) -> list[Column]:
    """Return the columns in the order of the header. Raises Rejected, naming the column."""
    if not signature.inputs:
        raise _rejected(f"The inputs of {version} are not known, so {name} must be JSON lines.")
    where = f"Line 1 of {name}"
    names = _names_in(header, where)
    inputs = [tensor.name for tensor in signature.inputs]
    listed = ", ".join(inputs[:_LISTED])
    for column in names:
        if names.count(column) > 1:
            raise _rejected(f"{where}: the column “{column}” appears twice.")
        if column not in inputs and column != csv_rows.ID:
            raise _rejected(
                f"{where}, column “{column}”: {version} has no such input. Its inputs are: {listed}."
            )
    missing = [one for one in inputs if one not in names]
    if missing:
        raise _rejected(f"{where} has no column “{missing[0]}”. The inputs are: {listed}.")
    return [_column(column, signature, where) for column in names]


def columns_of_inputs(signature: Signature, *, version: str) -> list[Column]:
    """Return a column for each input of the model, as messages of a queue have them. Raises Rejected."""
    where = f"The inputs of {version}"
    if not signature.inputs:
        raise _rejected(f"{where} are not known.")
    return [_column(tensor.name, signature, where) for tensor in signature.inputs]


def _names_in(header: bytes, where: str) -> list[str]:
    try:
        text = header.decode("utf-8-sig").rstrip("\r\n")
        return [cell.strip() for cell in csv_rows.cells_of(text)]
    except (UnicodeDecodeError, BadRow):
        raise _rejected(f"{where} is not a header of CSV in UTF-8.") from None


def _column(name: str, signature: Signature, where: str) -> Column:
    tensor = next((one for one in signature.inputs if one.name == name), None)
    if tensor is None:
        return [name, None, []]
    if tensor.protocol_dtype not in csv_rows.DATATYPES:
        raise _rejected(
            f"{where}, column “{name}”: it is {tensor.protocol_dtype}, which JSON cannot hold. Such a model reads "
            "no CSV."
        )
    dims = list(signature.wire_dims(tensor))
    return [name, tensor.protocol_dtype, [1, *dims[1:]] if signature.is_batched else dims]


class FirstRows:
    """A check of the first rows of all files of a job, so that a wrong file starts no nodes."""

    def __init__(self, *, error_limit: int) -> None:
        self._left, self._errors_left, self._first = CHECKED_ROWS, error_limit, ""

    def check_first(
        self, rows: Iterable[tuple[int, bytes]], columns: Sequence[Any], *, name: str
    ) -> Iterator[bytes]:
        """Yield the bodies of the rows, checking the first ones.

        Raises Rejected with the first bad row once more are bad than the job may have.
        """
        for line, body in rows:
            if self._left and body.strip():
                self._left -= 1
                self._check(line, body, columns, name)
            yield body

    def _check(self, line: int, body: bytes, columns: Sequence[Any], name: str) -> None:
        try:
            csv_rows.request_of(body, list(columns), line)
        except BadRow as error:
            self._first = self._first or f"{name}, {error}"
            if not self._errors_left:
                raise _rejected(
                    f"More of the first rows than the error limit are no requests. First: {self._first}."
                ) from None
            self._errors_left -= 1


def _rejected(problem: str) -> Rejected:
    return Rejected(problem, {"input": problem})
