"""The context of a command: the client, and where it writes.

Results go to the standard output, progress and errors to the standard error. With --json the output is one JSON
document, or one on each line for commands that follow something.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from slipway_client.client import Client
from slipway_client.errors import ApiError, InvalidInput, SlipwayError
from slipway_client.types.base import Answer


@dataclass
class Context:
    """The context of a command. `connect` makes the client when the first request needs it."""

    is_json: bool
    connect: Callable[..., Client] = Client
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    sleep: Callable[[float], None] = time.sleep
    _client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self.connect()
        return self._client

    @property
    def console(self) -> Console:
        return Console(file=self.out, highlight=False, soft_wrap=True)

    @property
    def progress_console(self) -> Console:
        return Console(file=self.err, highlight=False, soft_wrap=True, stderr=True)

    def show(self, answer: Answer | Sequence[Answer] | Mapping[str, Any], *lines: str) -> None:
        """Show the response as JSON, or the lines for people."""
        if self.is_json:
            self.write_json(to_raw(answer))
            return
        for line in lines:
            self.console.print(escape(line))

    def table(
        self, answers: Sequence[Answer], columns: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        if self.is_json:
            self.write_json(to_raw(answers))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        self.console.print(table, soft_wrap=False)

    def note(self, line: str) -> None:
        """Print a line about what is happening, which is not a part of the result. Prints nothing with --json."""
        if not self.is_json:
            self.progress_console.print(escape(line))

    def fail(self, error: SlipwayError) -> None:
        if self.is_json:
            print(json.dumps(describe_error(error)), file=self.err)
        else:
            self.progress_console.print(f"[red]Error:[/red] {escape(str(error))}")

    def write_json(self, value: Any) -> None:
        print(json.dumps(value, default=str), file=self.out, flush=True)

    def confirm(self, question: str, *, is_confirmed: bool) -> None:
        """Raises InvalidInput unless confirmed by --yes or at the terminal."""
        if is_confirmed:
            return
        if self.is_json or not self.stdin.isatty():
            raise InvalidInput(f"{question} Confirm with --yes.")
        self.progress_console.print(f"{escape(question)} \\[y/N] ", end="")
        if self.stdin.readline().strip().lower() not in ("y", "yes"):
            raise InvalidInput("Not confirmed; nothing was changed.")


def to_raw(answer: Answer | Sequence[Answer] | Mapping[str, Any]) -> Any:
    if isinstance(answer, Answer):
        return answer.raw
    if isinstance(answer, Mapping):
        return dict(answer)
    return [item.raw for item in answer]


def describe_error(error: SlipwayError) -> dict[str, Any]:
    if isinstance(error, ApiError):
        return {
            "error": error.detail,
            "code": error.code,
            "status": error.status,
            "fields": error.fields,
        }
    return {"error": str(error), "code": type(error).__name__}
