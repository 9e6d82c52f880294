"""Keys of callers that are signed tokens (JWT, ES256), for gateways that verify instead of comparing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deployments.access.domain.headers import KEY_PREFIX

_ALGORITHM: Final = "ES256"
_SHOWN: Final = 7


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A pair of signing keys. `private_pem` is a secret; `public_jwk` is published."""

    kid: str
    private_pem: str
    public_jwk: Mapping[str, str]


def new_key_pair() -> KeyPair:
    """Create a key pair on P-256. The key id is the thumbprint of RFC 7638."""
    private = ec.generate_private_key(ec.SECP256R1())
    numbers = private.public_key().public_numbers()
    point = {"crv": "P-256", "kty": "EC", "x": _encoded(numbers.x), "y": _encoded(numbers.y)}
    canonical = json.dumps(point, sort_keys=True, separators=(",", ":"))
    kid = _base64url(hashlib.sha256(canonical.encode()).digest())
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    return KeyPair(kid, pem, {**point, "kid": kid, "alg": _ALGORITHM, "use": "sig"})


def sign(
    *,
    private_pem: str,
    kid: str,
    issuer: str,
    client: str,
    audience: str,
    starts_at: datetime,
    ends_at: datetime,
) -> str:
    """Sign the key of one caller for one deployment. `client` is the name by which models and their logs know it."""
    claims = {
        "iss": issuer,
        "sub": client,
        "aud": audience,
        "iat": int(starts_at.timestamp()),
        "exp": int(ends_at.timestamp()),
    }
    return KEY_PREFIX + jwt.encode(claims, private_pem, algorithm=_ALGORITHM, headers={"kid": kid})


def hint_of(key: str) -> str:
    """Return the last characters of a key: the first ones of all signed keys are alike."""
    return f"…{key[-_SHOWN:]}"


def _encoded(number: int) -> str:
    return _base64url(number.to_bytes(32, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
