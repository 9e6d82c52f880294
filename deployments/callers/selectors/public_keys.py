"""The JWK set of signed keys of callers."""

from __future__ import annotations

import hashlib

from deployments.manifests.selectors import caller_access


def jwks() -> str:
    return caller_access.jwks()


def etag() -> str:
    return f'"{hashlib.sha256(jwks().encode()).hexdigest()[:32]}"'
