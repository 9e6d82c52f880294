"""Check an ID token as OpenID Connect Core 3.1.3.7 says, its signature included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jwt

# Never "none", and no HMAC: its key would be the client's secret.
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
# Of the provider's clock and ours.
_LEEWAY_SECONDS: Final = 60
_MAX_SUBJECT: Final = 255


class BadIdToken(Exception):
    """The token is not valid here. The message says why and contains nothing of the token."""


def check(
    token: str, *, keys: Mapping[str, Any], issuer: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """Check a token and return its claims. Raises BadIdToken."""
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key_of(token, keys),
            algorithms=list(_ALGORITHMS),
            audience=client_id,
            issuer=issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except jwt.ExpiredSignatureError as error:
        raise BadIdToken("it has expired") from error
    except jwt.InvalidAudienceError as error:
        raise BadIdToken("it was issued for another application") from error
    except jwt.InvalidIssuerError as error:
        raise BadIdToken("it was issued by another provider") from error
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise BadIdToken("it is malformed, or its signature is not valid") from error
    _check_claims(claims, client_id=client_id, nonce=nonce)
    return claims


def _check_claims(claims: Mapping[str, Any], *, client_id: str, nonce: str) -> None:
    audience = claims["aud"]
    is_for_several = isinstance(audience, list) and len(audience) > 1
    if (is_for_several or "azp" in claims) and claims.get("azp") != client_id:
        raise BadIdToken("it was issued to another application")
    if not nonce or claims.get("nonce") != nonce:
        raise BadIdToken("it belongs to another sign-in")
    subject = claims["sub"]
    is_text = isinstance(subject, str) and subject.isprintable()
    if not is_text or not 0 < len(subject) <= _MAX_SUBJECT:
        raise BadIdToken("its subject is not valid")


def _key_of(token: str, keys: Mapping[str, Any]) -> jwt.PyJWK:
    """Return the key that the token names; the only key when it names none."""
    usable = [key for key in jwt.PyJWKSet.from_dict(dict(keys)).keys if _signs(key)]
    key_id = jwt.get_unverified_header(token).get("kid")
    named = [key for key in usable if key.key_id == key_id] if key_id else usable
    if len(named) != 1:
        raise BadIdToken("it is signed with a key that the provider does not publish")
    return named[0]


def _signs(key: jwt.PyJWK) -> bool:
    return key.public_key_use in (None, "sig") and key.algorithm_name in _ALGORITHMS
