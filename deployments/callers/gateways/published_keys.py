"""Read the keys that a token issuer publishes, as a gateway's proxy does: no redirect is followed."""

from __future__ import annotations

import json
from typing import Any, Final

import requests

from portal.core import network_failures

_SECONDS: Final = 5.0
_MOST_BYTES: Final = 1024 * 1024


class NotPublished(Exception):
    """A proxy would get no keys at the address. The message says why."""


def read(url: str) -> list[dict[str, Any]]:
    """Read the keys of the JWK set, at least one. Raises NotPublished."""
    try:
        with requests.get(url, timeout=_SECONDS, allow_redirects=False, stream=True) as answer:
            if answer.is_redirect:
                raise NotPublished("it redirects, and proxies follow no redirect")
            if answer.status_code != requests.codes.ok:
                raise NotPublished(f"it answers {answer.status_code}")
            body = answer.raw.read(_MOST_BYTES + 1, decode_content=True)
    except (requests.RequestException, OSError) as error:
        raise NotPublished(f"it does not answer: {network_failures.describe(error)}") from error
    return _keys_of(body)


def _keys_of(body: bytes) -> list[dict[str, Any]]:
    """Read the keys in the body. Raises NotPublished if there are none."""
    try:
        content = json.loads(body[:_MOST_BYTES])
    except ValueError as error:
        raise NotPublished("it does not answer with JSON") from error
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list) or not keys:
        raise NotPublished("its answer has no keys")
    return [key for key in keys if isinstance(key, dict)]
