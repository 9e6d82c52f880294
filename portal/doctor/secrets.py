"""Take the values of secrets out of text: messages of drivers repeat addresses with their passwords."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

_REDACTED: Final = "[redacted]"
# user:password@ of any address.
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_OF_ENVIRONMENT: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# Replacing shorter ones would make holes in ordinary words.
_SHORTEST: Final = 6


def redact(text: str) -> str:
    text = _CREDENTIALS.sub(_REDACTED, text)
    for secret in sorted(_known(), key=len, reverse=True):
        text = text.replace(secret, _REDACTED)
    return text


def _known() -> set[str]:
    """Return the secrets, also percent-encoded as in URLs."""
    known = {secret for secret in _values() if len(secret) >= _SHORTEST}
    return known | {quote(secret, safe="") for secret in known}


def _values() -> Iterator[str]:
    yield settings.SECRET_KEY
    yield str(settings.DATABASES["default"].get("PASSWORD") or "")
    for address in (settings.SLIPWAY_REDIS_URL, settings.SLIPWAY_SMTP_URL):
        yield unquote(urlsplit(address).password or "")
    yield settings.SLIPWAY_IMPORT_HUGGINGFACE_TOKEN
    yield from settings.SLIPWAY_IMPORT_MLFLOW_CREDENTIALS.values()
    yield from (provider.client_secret for provider in settings.SLIPWAY_OIDC)
    yield from (os.environ.get(name, "") for name in _OF_ENVIRONMENT)
