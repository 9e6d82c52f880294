"""The only importer of Apprise: one message to one address."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

import apprise

# Apprise answers yes or no; the status is in what it logs, and nothing else of that is kept,
# because it names the address.
_STATUS: Final = re.compile(r"error\s*=\s*(\d{3})")
_GONE: Final = frozenset({"400", "401", "403", "404", "405", "410", "413", "422"})
# No redirects: the address was checked, the place it might lead to was not.
_ASSET: Final = apprise.AppriseAsset(
    app_id="Slipway", app_desc="Slipway", app_url="", http_redirects=False
)
_LIMITS: Final = {"cto": 4.0, "rto": 8.0}


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    body: str


class NotSent(Exception):
    """It may work later. The message never holds the address."""


class Refused(NotSent):
    """Trying again does not help: the address is wrong or gone."""


def send(url: str, message: Message) -> None:
    """Raises NotSent, or Refused when it cannot heal."""
    parsed = apprise.Apprise.instantiate(url, asset=_ASSET, suppress_exceptions=True)
    if parsed is None:
        raise Refused("the address is not valid")
    parsed.socket_connect_timeout = _LIMITS["cto"]
    parsed.socket_read_timeout = _LIMITS["rto"]
    with apprise.LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call]  # partly typed
        is_sent = parsed.notify(title=message.title, body=message.body)
        said = log.getvalue()
    if is_sent:
        return
    found = _STATUS.search(said)
    if found is None:
        raise NotSent("no response")
    if found[1] in _GONE:
        raise Refused(f"rejected with status {found[1]}")
    raise NotSent(f"failed with status {found[1]}")
