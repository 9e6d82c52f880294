"""The output of a batch job, from presigned addresses. The object store gets no token of the portal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import httpx

from slipway_client.errors import ConnectionFailed, Failed, InvalidInput
from slipway_client.types import BatchPart

_ATTEMPTS: Final = 5

# Of the part with this number, signed anew.
FindPart = Callable[[int], BatchPart]


def save(
    parts: Iterator[BatchPart],
    target: Path,
    find: FindPart,
    *,
    transport: httpx.BaseTransport | None = None,
) -> int:
    """Save all parts in one file, in the order of the rows, and return their number. The file appears once it is
    whole.

    Raises InvalidInput if the file exists.
    """
    if target.exists():
        raise InvalidInput(f"{target} exists. Choose another name, or remove it.")
    unfinished = target.with_name(f"{target.name}.part")
    count = 0
    timeout = httpx.Timeout(60.0, read=300.0)
    with httpx.Client(timeout=timeout, transport=transport) as http, unfinished.open("wb") as file:
        for part in parts:
            _append(http, part, file, find)
            count += 1
    unfinished.replace(target)
    return count


def _append(http: httpx.Client, part: BatchPart, file: IO[bytes], find: FindPart) -> None:
    start, problem = file.tell(), ""
    for _ in range(_ATTEMPTS):
        try:
            with http.stream("GET", part.url) as answer:
                if answer.is_success:
                    for block in answer.iter_raw():
                        file.write(block)
                    return
                problem = f"HTTP {answer.status_code}"
        except httpx.TransportError as error:
            problem = f"{type(error).__name__} {error}".strip()
        else:
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise Failed(f"Part {part.number} is no longer in the object store.")
        # What was written of it is written anew; an address ends after minutes.
        file.seek(start)
        file.truncate()
        part = find(part.number)
    raise ConnectionFailed(f"The object store did not give part {part.number}: {problem}.")
