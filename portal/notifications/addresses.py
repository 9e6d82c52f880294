"""The addresses that the portal may send to, and their Apprise URLs.

The portal runs inside the network, so an address from a user could make it call internal hosts (SSRF).
Only four kinds are accepted, and their URLs are built here field by field; a webhook must use HTTPS and
a public host, or a host that the operator allows.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from portal.core.errors import Invalid
from portal.core.public_addresses import is_public
from portal.notifications.models import ChannelKind

_SLACK: Final = re.compile(
    r"https://hooks\.slack(-gov)?\.com/(services|workflows|triggers)/[A-Za-z0-9/_-]+"
)
_TEAMS: Final = re.compile(
    r"https://[a-z0-9.-]+\.(logic\.azure\.com|powerplatform\.com)(:443)?/[A-Za-z0-9/_-]*"
    r"workflows/[A-Za-z0-9-]+/triggers/manual/paths/invoke/?\?[\x21-\x7e]+"
)
_PORTS: Final = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
_MODES: Final = {"smtps": "ssl", "smtp": "starttls", "smtp+plain": "insecure"}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a channel. `plain` is stored encrypted; `hint` may be shown."""

    plain: str
    hint: str


def check(kind: str, typed: str) -> Address:
    """Raises Invalid with the form that the kind requires. Resolves a webhook's host."""
    text = typed.strip()
    if kind not in _CHECKS:
        raise Invalid("Choose a channel type.", fields={"kind": "unknown"})
    return Address(plain=text, hint=_CHECKS[ChannelKind(kind)](text))


def check_reachable(kind: str, plain: str) -> None:
    """Check the host again before each message, because DNS can change. Raises Invalid or OSError."""
    if kind == ChannelKind.WEBHOOK:
        _check_host(urlsplit(plain))


def apprise_url(kind: str, plain: str, *, extras: Mapping[str, str]) -> str:
    """`extras` are added to a webhook's body, next to title, message and type."""
    if kind == ChannelKind.EMAIL:
        return _mail(plain)
    if kind == ChannelKind.WEBHOOK:
        return _webhook(urlsplit(plain), extras)
    return plain


def _slack(text: str) -> str:
    if not _SLACK.fullmatch(text):
        raise _bad("Enter a Slack webhook address: https://hooks.slack.com/services/…")
    return "hooks.slack.com"


def _teams(text: str) -> str:
    if not _TEAMS.fullmatch(text):
        raise _bad(
            "Enter the address of a Teams workflow (“Post to a channel when a webhook request is received”)."
        )
    return urlsplit(text).hostname or ""


def can_send_mail() -> bool:
    """Whether a mail server is configured."""
    return bool(settings.SLIPWAY_SMTP_URL)


def _email(text: str) -> str:
    if not can_send_mail():
        raise _bad("E-mail is not configured. A platform admin can set SLIPWAY_SMTP_URL.")
    try:
        validate_email(text)
    except ValidationError as error:
        raise _bad("Enter one e-mail address, for example ana@example.org.") from error
    return text


def _hook(text: str) -> str:
    url = urlsplit(text)
    is_plain = url.scheme == "http" and url.hostname in settings.SLIPWAY_NOTIFY_PRIVATE_HOSTS
    if not re.fullmatch(r"[\x21-\x7e]+", text) or not url.hostname:
        raise _bad("Enter the full address, for example https://hooks.example.org/slipway.")
    if url.scheme != "https" and not is_plain:
        raise _bad("The address must start with https://.")
    if url.username or url.password:
        raise _bad("Remove user and password from the address. Put a secret in the path instead.")
    try:
        _check_host(url)
    except OSError as error:
        raise _bad(f"The host name {url.hostname} could not be resolved.") from error
    return url.hostname


def _check_host(url: SplitResult) -> None:
    host = url.hostname or ""
    if host in settings.SLIPWAY_NOTIFY_PRIVATE_HOSTS:
        return
    resolved = {str(info[4][0]) for info in socket.getaddrinfo(host, url.port or 443)}
    if not all(is_public(address) for address in resolved):
        raise _bad(
            f"{host} is inside the portal's own network. A platform admin can allow it in "
            "SLIPWAY_NOTIFY_PRIVATE_HOSTS."
        )


def _mail(to: str) -> str:
    server = urlsplit(settings.SLIPWAY_SMTP_URL)
    host = server.hostname or ""
    who = ""
    if server.username:
        who = f"{server.username}:{server.password or ''}@"
    options = urlencode(
        {
            "smtp": host,
            "mode": _MODES.get(server.scheme, "starttls"),
            "from": settings.SLIPWAY_SMTP_FROM,
            "to": to,
            "format": "text",
        },
        quote_via=quote,
    )
    port = server.port or _PORTS.get(server.scheme, 587)
    scheme = "mailto" if server.scheme == "smtp+plain" else "mailtos"
    return f"{scheme}://{who}{host}:{port}/?{options}"


def _webhook(url: SplitResult, extras: Mapping[str, str]) -> str:
    scheme = "jsons" if url.scheme == "https" else "json"
    port = f":{url.port}" if url.port else ""
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    options = [(f"-{name}", value) for name, value in parse_qsl(url.query)]
    options += [(f":{name}", value) for name, value in extras.items()]
    return f"{scheme}://{host}{port}{url.path or '/'}?{urlencode(options, quote_via=quote)}"


def _bad(message: str) -> Invalid:
    return Invalid(message, fields={"address": message})


_CHECKS: Final[Mapping[ChannelKind, Callable[[str], str]]] = {
    ChannelKind.SLACK: _slack,
    ChannelKind.TEAMS: _teams,
    ChannelKind.EMAIL: _email,
    ChannelKind.WEBHOOK: _hook,
}
