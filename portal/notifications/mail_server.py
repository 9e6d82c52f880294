"""Whether the mail server accepts mail from the portal: as far as one gets without sending any."""

from __future__ import annotations

import smtplib
import ssl
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from portal.core import network_failures

_SECONDS: Final = 8.0
_PORTS: Final = {"smtps": 465, "smtp": 587, "smtp+plain": 25}


def problem_with(address: str) -> str:
    """Return the problem with a mail server. Empty if it accepts the connection, TLS and the user. Never contains
    the password.
    """
    server = urlsplit(address)
    if server.scheme not in _PORTS or not server.hostname:
        return "SLIPWAY_SMTP_URL must begin with smtps://, smtp:// or smtp+plain:// and a host"
    try:
        with _connect(server) as client:
            client.ehlo()
            if server.scheme == "smtp":
                client.starttls(context=ssl.create_default_context())
                client.ehlo()
            if server.username:
                client.login(unquote(server.username), unquote(server.password or ""))
            client.noop()
    except smtplib.SMTPAuthenticationError as error:
        return f"{server.hostname} refuses the user or the password (status {error.smtp_code})"
    except (OSError, smtplib.SMTPException) as error:
        return f"{server.hostname}: {network_failures.describe(error)}"
    return ""


def _connect(server: SplitResult) -> smtplib.SMTP:
    host, port = str(server.hostname), server.port or _PORTS[server.scheme]
    if server.scheme == "smtps":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, port, timeout=_SECONDS, context=context)
    return smtplib.SMTP(host, port, timeout=_SECONDS)
