"""Encrypt addresses of channels, because anyone who has one can write into the chat."""

from __future__ import annotations

from typing import Final

from portal.core import sealing

Unreadable = sealing.UnreadableSecret
_ADDRESSES: Final = "channel addresses"
_LINKS: Final = "decision links"


def seal(text: str) -> str:
    return sealing.seal(_ADDRESSES, text)


def unseal(sealed: str) -> str:
    """Raises Unreadable."""
    try:
        return sealing.unseal(_ADDRESSES, sealed)
    except Unreadable as error:
        raise Unreadable(
            "the saved address cannot be decrypted with the current secret key"
        ) from error


def derive_token(nonce: str) -> str:
    """Derive a token from a nonce and the secret key."""
    return sealing.derive_token(_LINKS, nonce)
