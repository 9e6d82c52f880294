"""login, logout, whoami."""

from __future__ import annotations

import argparse
import getpass

from slipway_client import login
from slipway_client.cli.context import Context
from slipway_client.errors import InvalidInput
from slipway_client.types import Me

_KNOWN = ("read", "upload", "request", "decide")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "login",
        help="store the address and a token",
        description="Store the portal's address and a token. Its scopes decide which commands it can "
        "run: upload (push, import), request (deploy, change), decide (approve, promote, abort). A token with decide expires after "
        f"1 day. {login.URL_VARIABLE} and {login.TOKEN_VARIABLE} take precedence over what is stored.",
    )
    command.add_argument("url", help="for example https://slipway.example.org")
    command.add_argument(
        "--token-stdin", action="store_true", help="read the token from the standard input"
    )
    command.add_argument(
        "--scopes",
        default="upload,request",
        help="what the token is for, ticked on the page that the command names (default: %(default)s)",
    )
    command.set_defaults(run=log_in)
    command = commands.add_parser("logout", help="delete the stored token")
    command.set_defaults(run=log_out)
    command = commands.add_parser("whoami", help="show whose token is used, and where")
    command.set_defaults(run=show_me)


def log_in(context: Context, options: argparse.Namespace) -> None:
    """Log in.

    Nothing is stored unless the portal accepts the token, which is never an argument: other users of the machine
    could read those.
    """
    url = login.check_url(options.url)
    is_piped = options.token_stdin or not context.stdin.isatty()
    if not is_piped:
        context.note(f"Create a token at {url}/account/tokens?scopes={_scopes(options.scopes)}")
    token = context.stdin.readline() if is_piped else getpass.getpass("Token: ")
    if not token.strip():
        raise InvalidInput("No token was given.")
    token = token.strip()
    with context.connect(url, token) as client:
        me = client.me()
    path = login.save(login.Login(url, token))
    context.show(me, f"Signed in to {url} as {me.username}. Stored in {path}.", *_limits(me))


def log_out(context: Context, options: argparse.Namespace) -> None:
    removed = login.remove()
    text = (
        "The stored token is deleted here; revoke it in the portal."
        if removed
        else "Not signed in."
    )
    context.show({"removed": removed}, text)


def show_me(context: Context, options: argparse.Namespace) -> None:
    me = context.client.me()
    teams = ", ".join(f"{team.slug} ({team.role})" for team in me.teams) or "none"
    context.show(me, f"{me.username} at {context.client.url}. Teams: {teams}.", *_limits(me))


def _limits(me: Me) -> list[str]:
    if me.token is None:
        return []
    scopes = ", ".join(me.token.scopes)
    return [
        f"The token “{me.token.name}” can {scopes}, until {me.token.expires_at:%Y-%m-%d %H:%M} UTC."
    ]


def _scopes(text: str) -> str:
    """Raises InvalidInput for an unknown scope."""
    given = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise InvalidInput(f"Unknown scope {unknown[0]!r}. Use {', '.join(_KNOWN)}.")
    return ",".join(given)
