"""The source of the portal's address and the token: the environment, or else the login file.

The file is readable by its owner only (0600). The token is never printed.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from slipway_client.errors import InvalidInput, NotLoggedIn

URL_VARIABLE = "SLIPWAY_URL"
TOKEN_VARIABLE = "SLIPWAY_TOKEN"  # noqa: S105  the name of a variable
_HINT = f"Run `slipway login URL`, or set {URL_VARIABLE} and {TOKEN_VARIABLE}."


@dataclass(frozen=True, slots=True)
class Login:
    url: str
    token: str = field(repr=False)


def path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification: a relative path is invalid and ignored.
    folder = Path(base) if base.startswith("/") else Path.home() / ".config"
    return folder / "slipway" / "login.json"


def read(url: str | None = None, token: str | None = None) -> Login:
    """Read the login. Arguments win over the environment, and the environment over the file.

    A token of the file belongs to the file's portal and is never sent to another one. Raises NotLoggedIn.
    """
    stored = _read_file()
    url = url or os.environ.get(URL_VARIABLE) or (stored.url if stored else "")
    if not url:
        raise NotLoggedIn(f"No portal is set. {_HINT}")
    url = check_url(url)
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token and stored and stored.url == url:
        token = stored.token
    if not token:
        raise NotLoggedIn(f"No token for {url} is set. {_HINT}")
    return Login(url, token)


def save(login: Login) -> Path:
    """Replace the login file as a whole. Nobody else can read it at any moment."""
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    content = json.dumps({"url": check_url(login.url), "token": login.token})
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
        file.write(content)
    draft.replace(target)
    return target


def remove() -> bool:
    """Whether there was a file."""
    existed = path().exists()
    path().unlink(missing_ok=True)
    return existed


def check_url(url: str) -> str:
    """Return the URL without a trailing slash. Raises InvalidInput if it is not a portal's address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{url!r} is not an address. Use https://host, or http://host:port.")
    if parts.username or parts.password:
        raise InvalidInput("The address must not contain a password. The token signs you in.")
    return url.rstrip("/")


def _read_file() -> Login | None:
    try:
        mode = path().stat().st_mode
        content = json.loads(path().read_text())
        stored = Login(str(content["url"]), str(content["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotLoggedIn(
            f"{path()} cannot be read ({error}). Run `slipway login` again."
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise NotLoggedIn(f"Others can read {path()}. Run: chmod 600 {path()}")
    return stored
