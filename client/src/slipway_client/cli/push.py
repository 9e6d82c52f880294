"""push."""

from __future__ import annotations

import argparse
import shlex
from types import TracebackType
from typing import Self

from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from slipway_client import settings
from slipway_client.cli import exit_codes, formatting
from slipway_client.cli.context import Context
from slipway_client.types import Check, Version

_TITLES = {"digest": "SHA-256", "send": "Upload"}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "push",
        help="upload a file or a folder as a new version",
        description="Upload a file or a folder as a new version and wait until it is verified. "
        "Run it again to resume an interrupted upload, from any machine with the same files.",
    )
    command.add_argument("path", help="a file or a folder")
    command.add_argument("model", help="team/model; created with its first version")
    command.add_argument(
        "--metadata", action="append", default=[], metavar="NAME=VALUE", help="accuracy=0.94"
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="declared.max_batch_size=8"
    )
    command.add_argument(
        "--allow-duplicate", action="store_true", help="even if a version has them"
    )
    command.add_argument("--parallel", type=int, default=4, help="parts in flight, 1 to 16")
    command.add_argument("--no-wait", action="store_true", help="do not wait for the verification")
    command.add_argument("--timeout", type=float, default=1800.0, metavar="SECONDS")
    command.set_defaults(run=push)


def push(context: Context, options: argparse.Namespace) -> int:
    fields = settings.settings(options.set)
    try:
        with Bars(context) as bars:
            version = context.client.push(
                options.path,
                options.model,
                metadata=settings.settings(options.metadata),
                fields=fields,
                allow_duplicate=options.allow_duplicate,
                parallel=max(1, min(options.parallel, 16)),
                wait=not options.no_wait,
                seconds=options.timeout,
                progress=bars,
            )
    except KeyboardInterrupt:
        command = shlex.join(["slipway", "push", options.path, options.model])
        context.note(f"Interrupted. What was sent is kept for a day. Resume with: {command}")
        return exit_codes.INTERRUPTED
    context.show(version, f"{version} is {version.state}.", *_next(version))
    return exit_codes.OK


class Bars:
    """Progress for a terminal; nothing but notes with --json."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=context.progress_console,
            disable=context.is_json,
        )
        self._tasks: dict[str, TaskID] = {}
        self._checks: dict[str, Check] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begin(self, stage: str, total_bytes: int) -> None:
        if stage in self._tasks:
            self._progress.reset(self._tasks[stage], total=total_bytes)
            return
        self._tasks[stage] = self._progress.add_task(_TITLES[stage], total=total_bytes)

    def advance(self, stage: str, count: int) -> None:
        self._progress.advance(self._tasks[stage], count)

    def note(self, line: str) -> None:
        if not self._context.is_json:
            self._progress.console.print(escape(line))

    def verifying(self, version: Version) -> None:
        """Print each check in one line, once it is known."""
        for check in version.checks:
            if check.ok is not None and self._checks.get(check.name) != check:
                self.note(f"{formatting.mark(check.ok)} {check.name}: {check.detail}")
            self._checks[check.name] = check


def _next(version: Version) -> list[str]:
    return [f"Deploy it: slipway deploy {version}"] if version.state == "ready" else []
