"""CSV downloads, streamed row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from django.http import StreamingHttpResponse


def stream(
    header: Iterable[str], rows: Iterable[Iterable[object]], filename: str
) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        _lines(header, rows),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


class _Echo:
    """A file for csv.writer that returns each line instead of storing it."""

    def write(self, text: str) -> str:
        return text


def _lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow(row)
