"""Read environment variables with types; errors name the variable and the fix."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

_SERVER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


class BadEnvironment(Exception):
    """A variable is missing or cannot be read; the message names it and says what to set."""


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None:
        raise BadEnvironment(
            f"{name} is not set. Set it, or run `make demo` for embedded defaults."
        )
    return value


def secret(name: str, *, value_hint: str = "its value") -> str:
    """Read NAME, or the file that NAME_FILE points to; secrets have no default. Raises BadEnvironment."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise BadEnvironment(f"{name}_FILE points to {path}, which cannot be read.") from error
    value = os.environ.get(name, "")
    if not value:
        raise BadEnvironment(
            f"{name} is not set. Set it to {value_hint}, or {name}_FILE to the path of a file that has it."
        )
    return value


def optional_secret(name: str, *, least_characters: int = 0) -> str:
    """Return a secret of the environment. Empty if neither NAME nor NAME_FILE is set. Raises BadEnvironment if it
    is too short.
    """
    if not (os.environ.get(name) or os.environ.get(f"{name}_FILE")):
        return ""
    value = secret(name)
    if len(value) < least_characters:
        raise BadEnvironment(
            f"{name} is too short. Use {least_characters} random characters or more."
        )
    return value


def flag(name: str, *, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.lower() in {"1", "true", "yes", "on"}:
        return True
    if value.lower() in {"0", "false", "no", "off", ""}:
        return False
    raise BadEnvironment(f"{name}={value!r} is not a boolean. Use 1 or 0.")


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


def addresses(name: str) -> dict[str, str]:
    """Read servers by name: prod=https://mlflow.example.com,lab=http://10.0.0.7:5000."""
    servers: dict[str, str] = {}
    for item in names(name):
        key, equals, url = (part.strip() for part in item.partition("="))
        if not _SERVER_NAME.fullmatch(key) or not equals or not _is_plain_address(url):
            raise BadEnvironment(
                f"{name}: {key[:40]!r} cannot be read. Write name=https://host, names in lowercase, the "
                "address without user, password and query."
            )
        if key in servers:
            raise BadEnvironment(f"{name} names {key} twice.")
        servers[key] = url
    return servers


def secrets_by_name(name: str) -> dict[str, str]:
    """Read NAME, or the file that NAME_FILE points to: a line "name=secret" each."""
    lines = [line.strip() for line in optional_secret(name).splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    if not all(key.strip() and equals and value.strip() for key, equals, value in pairs):
        raise BadEnvironment(f"{name}: a line cannot be read. Write name=secret, one a line.")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _is_plain_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    is_bare = not (parts.username or parts.password or parts.query or parts.fragment)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_bare and has_port


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Read a comma-separated list of addresses and networks: 10.0.0.0/8,192.0.2.7."""
    try:
        return [ip_network(item, strict=False) for item in names(name)]
    except ValueError as error:
        raise BadEnvironment(
            f"{name}: {error}. Write addresses or networks, such as 10.0.0.0/8."
        ) from error


def database(name: str) -> dict[str, object]:
    """Read a database URL: postgres://user:password@host:5432/name or sqlite:///path/to/file (absolute).

    The query of a postgres URL goes to libpq: `?sslmode=verify-full&sslrootcert=/etc/ca.pem`;
    `?host=/path` names the folder of a Unix socket.
    """
    url = urlsplit(secret(name))
    options = _query(name, url)
    if url.scheme == "sqlite" and not options:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(url.path),
            # A tenth of a request's processor time is opening the file and setting it up.
            "CONN_MAX_AGE": 60,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if url.scheme in {"postgres", "postgresql"}:
        _refuse_given_twice(name, url, options)
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url.path[1:]) or options.pop("dbname", ""),
            "USER": unquote(url.username or "") or options.pop("user", ""),
            "PASSWORD": unquote(url.password or "") or options.pop("password", ""),
            "HOST": unquote(url.hostname or "") or options.pop("host", ""),
            "PORT": url.port or options.pop("port", ""),
            "OPTIONS": options,
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
        }
    if url.scheme == "sqlite":
        raise BadEnvironment(f"{name}: SQLite has no option {min(options)!r}. Leave it out.")
    raise BadEnvironment(f"{name} must begin with postgres:// or sqlite:///, not {url.scheme!r}.")


def _query(name: str, url: SplitResult) -> dict[str, str]:
    """Read as libpq does: percent signs only, a "+" stays one, and each option once."""
    options: dict[str, str] = {}
    for item in filter(None, url.query.split("&")):
        key, equals, value = item.partition("=")
        if not equals or not key or key in options:
            raise BadEnvironment(
                f"{name}: the query {item.partition('=')[0]!r} cannot be read. Write each option "
                "once, as in ?sslmode=verify-full&connect_timeout=5."
            )
        options[unquote(key)] = unquote(value)
    return options


def _refuse_given_twice(name: str, url: SplitResult, options: dict[str, str]) -> None:
    """Reject ambiguous settings instead of dropping one of them."""
    options_of_url = {
        "dbname": url.path[1:],
        "user": url.username,
        "password": url.password,
        "host": url.hostname,
        "port": url.port,
    }
    duplicates = [option for option, value in options_of_url.items() if value and option in options]
    if duplicates:
        raise BadEnvironment(
            f"{name} names {duplicates[0]} twice, before and after the question mark. Leave one out."
        )
