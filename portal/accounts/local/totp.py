"""Codes of authenticator apps: RFC 6238 with SHA-1, six digits and 30 seconds, which all of them know."""

from __future__ import annotations

import base64
import hmac
import secrets
from io import BytesIO
from typing import Final
from urllib.parse import quote, urlencode

import qrcode
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from qrcode.image.svg import SvgPathImage

STEP_SECONDS: Final = 30
_DIGITS: Final = 6
_KEY_BYTES: Final = 20
# Of the phone's clock, in both directions.
_TOLERANCE_STEPS: Final = 1
_ISSUER: Final = "Slipway"


def new_key() -> str:
    """Create a key in Base32, as people type it into an app."""
    return base64.b32encode(secrets.token_bytes(_KEY_BYTES)).decode()


def code_at(key: str, seconds: int) -> str:
    # HMAC with SHA-1 is not broken.
    totp = TOTP(base64.b32decode(key), _DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303  apps know no other
    return totp.generate(seconds).decode()


def find_step(key: str, code: str, *, seconds: int, after: int) -> int | None:
    """Return the time step of a code that is valid now and later than the step `after`. None for any other."""
    text = "".join(code.split())
    now = seconds // STEP_SECONDS
    for step in range(now - _TOLERANCE_STEPS, now + _TOLERANCE_STEPS + 1):
        is_same = hmac.compare_digest(code_at(key, step * STEP_SECONDS).encode(), text.encode())
        if is_same and step > after:
            return step
    return None


def address(key: str, *, username: str) -> str:
    """Return the otpauth URI that the QR code contains."""
    label = quote(f"{_ISSUER}:{username}")
    return f"otpauth://totp/{label}?{urlencode({'secret': key, 'issuer': _ISSUER})}"


def picture(text: str) -> str:
    """Return a QR code as the URL of an SVG image."""
    stream = BytesIO()
    qrcode.make(text, image_factory=SvgPathImage, border=2).save(stream)
    return f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"
