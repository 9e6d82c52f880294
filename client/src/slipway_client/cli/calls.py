"""call, logs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from slipway_client.cli.context import Context
from slipway_client.errors import Failed, InvalidInput
from slipway_client.types import Log

_FOLLOW_SECONDS = 2.0


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "call",
        help="send one inference request",
        description="Inputs are JSON, nested lists by input name, as an argument, @FILE or - for "
        """the standard input: slipway call vision/detector '{"x": [[1, 2, 3, 4]]}'""",
    )
    command.add_argument("deployment", help="team/deployment")
    command.add_argument("inputs", help="JSON, @FILE, or - for the standard input")
    command.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    command.set_defaults(run=call)
    command = commands.add_parser("logs", help="show the log of a pod")
    command.add_argument("deployment", help="team/deployment")
    command.add_argument("-f", "--follow", action="store_true")
    command.add_argument("--pod", default="", help="default: the newest")
    command.add_argument("--lines", type=int, default=200, help="1 to 2000")
    command.set_defaults(run=show_log)


def call(context: Context, options: argparse.Namespace) -> None:
    inputs = _inputs(context, options.inputs)
    outputs = context.client.call(options.deployment, inputs, timeout=options.timeout)
    context.write_json(
        {
            name: value.tolist() if hasattr(value, "tolist") else value
            for name, value in outputs.items()
        }
    )


def show_log(context: Context, options: argparse.Namespace) -> None:
    deployment = context.client.deployments.get(options.deployment)
    shown: list[str] = []
    pod = options.pod
    while True:
        log = context.client.deployments.logs(deployment.id, pod=pod, lines=options.lines)
        if log.problem and not options.follow:
            raise Failed(log.problem)
        if not log.pod and not options.follow:
            raise Failed(f"{deployment} has no pod.")
        lines = log.text.splitlines()
        added = new_lines(shown, lines)
        _print(context, log, added, is_first=not shown)
        shown = lines or shown
        if not options.follow:
            return
        context.sleep(_FOLLOW_SECONDS)


def new_lines(shown: list[str], lines: list[str]) -> list[str]:
    """Return the lines that follow the shown ones, where both are the end of one log. A log that began again, after
    a restart, is new entirely.
    """
    for start in range(len(shown)):
        overlap = len(shown) - start
        if shown[start:] == lines[:overlap]:
            return lines[overlap:]
    return lines


def _print(context: Context, log: Log, lines: list[str], *, is_first: bool) -> None:
    if context.is_json:
        context.write_json({"pod": log.pod, "lines": lines, "problem": log.problem})
        return
    if is_first and log.pod:
        context.note(f"Pod {log.pod}")
    for line in lines:
        print(line, file=context.out, flush=True)


def _inputs(context: Context, text: str) -> dict[str, Any]:
    if text == "-":
        content = context.stdin.read()
    elif text.startswith("@"):
        try:
            content = Path(text[1:]).read_text()
        except OSError as error:
            raise InvalidInput(f"{text[1:]} cannot be read: {error.strerror}") from error
    else:
        content = text
    try:
        inputs = json.loads(content)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The inputs are not JSON: {error}") from error
    if not isinstance(inputs, dict):
        raise InvalidInput('Inputs are an object by input name, for example {"x": [[1, 2]]}.')
    return inputs
