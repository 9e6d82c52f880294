"""`slipway`: arguments, commands, exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from slipway_client.cli import (
    account,
    alerts,
    batch,
    calls,
    costs,
    exit_codes,
    fleet,
    imports,
    push,
    registry,
    requests,
    rollouts,
    status,
)
from slipway_client.cli.context import Context
from slipway_client.errors import SlipwayError


class _Group(Protocol):
    def __call__(
        self, commands: argparse._SubParsersAction[argparse.ArgumentParser], /
    ) -> None: ...


_GROUPS: Sequence[_Group] = (
    account.add_commands,
    registry.add_commands,
    push.add_commands,
    imports.add_commands,
    requests.add_commands,
    status.add_commands,
    rollouts.add_commands,
    calls.add_commands,
    costs.add_commands,
    alerts.add_commands,
    fleet.add_commands,
    batch.add_commands,
)


def run() -> None:
    code = main(sys.argv[1:])
    if code == exit_codes.INTERRUPTED:
        # Threads of an upload may wait for an answer of the store for minutes.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str], make_context: Callable[..., Context] = Context) -> int:
    """Run a command and return the exit code; argparse exits with 2 by itself."""
    options = parser().parse_args(arguments)
    context = make_context(is_json=options.is_json)
    try:
        code = options.run(context, options)
    except SlipwayError as error:
        context.fail(error)
        return exit_codes.get_exit_code(error)
    except KeyboardInterrupt:
        context.note("Interrupted.")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # `slipway models | head`: the reader has enough. Python must not flush into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    return int(code or exit_codes.OK)


def parser() -> argparse.ArgumentParser:
    meanings = "\n".join(f"  {code:>3}  {text}" for code, text in exit_codes.MEANINGS.items())
    main_parser = argparse.ArgumentParser(
        prog="slipway",
        description="Upload models, deploy them, follow rollouts.",
        epilog=f"exit codes:\n{meanings}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument("--version", action="version", version=f"slipway {_version()}")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_commands in _GROUPS:
        add_commands(commands)
    for command in set(commands.choices.values()):
        command.add_argument(
            "--json", dest="is_json", action="store_true", help="print JSON instead of text"
        )
    return main_parser


def _version() -> str:
    try:
        return version("slipway-client")
    except PackageNotFoundError:
        return "(not installed)"
