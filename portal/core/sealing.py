"""Keys derived from SLIPWAY_SECRET_KEY, one for each purpose, so that a copy of the database alone reveals
nothing. After a change of that key without a fallback, what was sealed must be entered again.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class UnreadableSecret(Exception):
    """The text was encrypted with another secret key, or altered."""


def seal(purpose: str, text: str) -> str:
    return _fernet(purpose).encrypt(text.encode()).decode()


def unseal(purpose: str, sealed: str) -> str:
    """Raises Unreadable."""
    try:
        return _fernet(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise UnreadableSecret("it cannot be decrypted with the current secret key") from error


def digest(purpose: str, text: str) -> bytes:
    """Return a keyed hash: without the secret key nobody computes it."""
    return hmac.digest(_key(settings.SECRET_KEY, purpose), text.encode(), "sha256")


def derive_token(purpose: str, nonce: str) -> str:
    """Derive a token from a nonce and the secret key, so that the row of the nonce does not hold the token."""
    return urlsafe_b64encode(digest(purpose, nonce)).decode().rstrip("=")


def _fernet(purpose: str) -> MultiFernet:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(urlsafe_b64encode(_key(key, purpose))) for key in keys])


def _key(secret_key: str | bytes, purpose: str) -> bytes:
    """The secret key is long and random (a system check requires it), so one keyed hash is enough."""
    key = secret_key.encode() if isinstance(secret_key, str) else secret_key
    return hmac.digest(key, b"slipway " + purpose.encode(), hashlib.sha256)
