"""Encrypt addresses of channels, because anyone who has one can write into the chat.

The key is derived from SLIPWAY_SECRET_KEY, so that a copy of the database alone reveals none. After a
change of that key, addresses must be entered again.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(Exception):
    """The text was encrypted with another secret key, or altered."""


def seal(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable(
            "the saved address cannot be decrypted with the current secret key"
        ) from error


def token_of(nonce: str) -> str:
    """Derive a token from a nonce and the secret key."""
    digest = hmac.digest(_key(settings.SECRET_KEY, b"decision links"), nonce.encode(), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _fernet() -> MultiFernet:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(urlsafe_b64encode(_key(key, b"channel addresses"))) for key in keys])


def _key(secret_key: str | bytes, purpose: bytes) -> bytes:
    """The secret key is long and random (a system check requires it), so one keyed hash is enough."""
    key = secret_key.encode() if isinstance(secret_key, str) else secret_key
    return hmac.digest(key, b"slipway " + purpose, hashlib.sha256)
