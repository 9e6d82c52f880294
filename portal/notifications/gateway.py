"""The gateway to Apprise: send one message to one address."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

# Apprise returns only success or failure. The status is parsed from its log, of which nothing else is
# kept, because it contains the address.
_STATUS: Final = re.compile(r"error\s*=\s*(\d{3})")
_GONE: Final = frozenset({"400", "401", "403", "404", "405", "410", "413", "422"})
_LIMITS: Final = {"cto": 4.0, "rto": 8.0}


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    body: str


class NotSent(Exception):
    """A retry may help. The message never contains the address."""


class Refused(NotSent):
    """A retry does not help: the address is invalid or gone."""


def send(url: str, message: Message) -> None:
    """Raises NotSent, or Refused when a retry cannot help."""
    import apprise  # noqa: PLC0415  slow import; most processes send nothing

    # No redirects: only the address itself was checked.
    asset = apprise.AppriseAsset(
        app_id="Slipway", app_desc="Slipway", app_url="", http_redirects=False
    )
    parsed = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if parsed is None:
        raise Refused("the address is not valid")
    parsed.socket_connect_timeout = _LIMITS["cto"]
    parsed.socket_read_timeout = _LIMITS["rto"]
    with apprise.LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call]  # partly typed
        is_sent = parsed.notify(title=message.title, body=message.body)
        output = log.getvalue()
    if is_sent:
        return
    status = _STATUS.search(output)
    if status is None:
        raise NotSent("no response")
    if status[1] in _GONE:
        raise Refused(f"rejected with status {status[1]}")
    raise NotSent(f"failed with status {status[1]}")
