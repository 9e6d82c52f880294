"""Typed reading of environment variables that fails loudly, naming the variable and the fix."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


class BadEnvironment(Exception):
    """A variable is missing or cannot be read; the message names it and says what to set."""


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None:
        raise BadEnvironment(
            f"{name} is not set. Set it, or run `make demo` for embedded defaults."
        )
    return value


def secret(name: str) -> str:
    """Read NAME, or the file that NAME_FILE points to; secrets have no default."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise BadEnvironment(f"{name}_FILE points to {path}, which cannot be read.") from error
    value = os.environ.get(name, "")
    if not value:
        raise BadEnvironment(
            f"{name} is not set. Set {name} or {name}_FILE to a long random value."
        )
    return value


def optional_secret(name: str) -> str:
    """Empty when neither NAME nor NAME_FILE is set."""
    if os.environ.get(name) or os.environ.get(f"{name}_FILE"):
        return secret(name)
    return ""


def flag(name: str, *, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.lower() in {"1", "true", "yes", "on"}:
        return True
    if value.lower() in {"0", "false", "no", "off", ""}:
        return False
    raise BadEnvironment(f"{name}={value!r} is not a yes or no. Use 1 or 0.")


def integer(name: str, default: int) -> int:
    value = os.environ.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError as error:
        raise BadEnvironment(f"{name}={value!r} is not a whole number.") from error


def names(name: str, default: str = "") -> list[str]:
    """Read a comma-separated list."""
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


def database(name: str) -> dict[str, object]:
    """Read a database URL: postgres://user:password@host:5432/name or sqlite:///path/to/file (absolute).

    `?host=/path` names the folder of a Unix socket, as in libpq.
    """
    url = urlsplit(secret(name))
    if url.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(url.path),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if url.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url.path[1:]),
            "USER": unquote(url.username or ""),
            "PASSWORD": unquote(url.password or ""),
            "HOST": unquote(url.hostname or "") or parse_qs(url.query).get("host", [""])[0],
            "PORT": url.port or "",
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
        }
    raise BadEnvironment(f"{name} must begin with postgres:// or sqlite:///, not {url.scheme!r}.")
