"""login, logout, whoami."""

from __future__ import annotations

import argparse
import getpass

from slipway_client import login
from slipway_client.cli.context import Context
from slipway_client.errors import InvalidInput


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "login",
        help="store the address and a token",
        description="Store the portal's address and a token, which is made under your name > API "
        f"tokens. {login.URL_VARIABLE} and {login.TOKEN_VARIABLE} win over what is stored.",
    )
    command.add_argument("url", help="for example https://slipway.example.org")
    command.add_argument(
        "--token-stdin", action="store_true", help="read the token from the standard input"
    )
    command.set_defaults(run=log_in)
    command = commands.add_parser("logout", help="delete the stored token")
    command.set_defaults(run=log_out)
    command = commands.add_parser("whoami", help="show whose token is used, and where")
    command.set_defaults(run=show_me)


def log_in(context: Context, options: argparse.Namespace) -> None:
    """Nothing is stored unless the portal accepts the token."""
    url = login.checked_url(options.url)
    token = _read_token(context, from_stdin=options.token_stdin)
    with context.connect(url, token) as client:
        me = client.me()
    path = login.save(login.Login(url, token))
    context.show(me, f"Signed in to {url} as {me.username}. Stored in {path}.")


def log_out(context: Context, options: argparse.Namespace) -> None:
    removed = login.remove()
    text = "The stored token is deleted here; revoke it in the portal." if removed else "No login."
    context.show({"removed": removed}, text)


def show_me(context: Context, options: argparse.Namespace) -> None:
    me = context.client.me()
    teams = ", ".join(f"{team.slug} ({team.role})" for team in me.teams) or "none"
    context.show(me, f"{me.username} at {context.client.url}. Teams: {teams}.")


def _read_token(context: Context, *, from_stdin: bool) -> str:
    """Never an argument: other users of the machine could read those."""
    if from_stdin or not context.stdin.isatty():
        token = context.stdin.readline()
    else:
        token = getpass.getpass("Token: ")
    if not token.strip():
        raise InvalidInput("No token was given.")
    return token.strip()
