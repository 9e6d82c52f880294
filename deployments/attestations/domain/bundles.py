"""Read a Sigstore bundle or a DSSE envelope: the signature, and what was signed.

`model_signing`, `cosign sign-blob --bundle`, `cosign attest-blob --bundle` and generators of SLSA
provenance write these. Only their structure is read here; nothing is verified.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MOST_CERTIFICATES: Final = 10
_MOST_SIGNATURES: Final = 10
_SHA256: Final = "SHA2_256"


class AttestationInvalid(ValueError):
    """An attestation cannot be used. The message says what is wrong, for the person who added it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A DSSE envelope."""

    payload_type: str
    payload: bytes
    signatures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class MessageSignature:
    """A signature over one file, of which the signer states the SHA-256."""

    sha256: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Bundle:
    content: Envelope | MessageSignature
    # DER, the signer's own first; empty when a plain key signed.
    certificates: tuple[bytes, ...] = ()


def parse(document: Any) -> Bundle:
    """Parse the JSON of a bundle or an envelope. Raises AttestationInvalid."""
    fields = _mapping(document, "the document")
    if "payload" in fields:
        return Bundle(_envelope(fields))
    media_type = fields.get("mediaType")
    if not isinstance(media_type, str) or "sigstore.bundle" not in media_type:
        raise AttestationInvalid("This is neither a Sigstore bundle nor a DSSE envelope.")
    material = _mapping(fields.get("verificationMaterial"), "verificationMaterial")
    return Bundle(_content(fields), _certificates(material))


def _content(fields: Mapping[str, Any]) -> Envelope | MessageSignature:
    if "dsseEnvelope" in fields:
        return _envelope(_mapping(fields["dsseEnvelope"], "dsseEnvelope"))
    if "messageSignature" not in fields:
        raise AttestationInvalid("The bundle has neither a messageSignature nor a dsseEnvelope.")
    message = _mapping(fields["messageSignature"], "messageSignature")
    digest = _mapping(message.get("messageDigest"), "messageDigest")
    if digest.get("algorithm") != _SHA256:
        raise AttestationInvalid(f"The messageDigest must be {_SHA256}.")
    sha256 = _decode(digest.get("digest"), "messageDigest.digest")
    if len(sha256) != 32:
        raise AttestationInvalid("The messageDigest is not a SHA-256.")
    return MessageSignature(sha256.hex(), _decode(message.get("signature"), "signature"))


def _envelope(fields: Mapping[str, Any]) -> Envelope:
    rows = fields.get("signatures")
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_SIGNATURES:
        raise AttestationInvalid(f"The DSSE envelope needs 1 to {_MOST_SIGNATURES} signatures.")
    signatures = tuple(_decode(_mapping(row, "signatures").get("sig"), "sig") for row in rows)
    payload_type = fields.get("payloadType")
    if not isinstance(payload_type, str):
        raise AttestationInvalid("The DSSE envelope has no payloadType.")
    return Envelope(payload_type, _decode(fields.get("payload"), "payload"), signatures)


def _certificates(material: Mapping[str, Any]) -> tuple[bytes, ...]:
    rows: Any = []
    if "certificate" in material:
        rows = [material["certificate"]]
    elif "x509CertificateChain" in material:
        chain = _mapping(material["x509CertificateChain"], "x509CertificateChain")
        rows = chain.get("certificates")
    if not isinstance(rows, list) or len(rows) > _MOST_CERTIFICATES:
        raise AttestationInvalid(f"The bundle may have up to {_MOST_CERTIFICATES} certificates.")
    return tuple(_decode(_mapping(row, "certificate").get("rawBytes"), "rawBytes") for row in rows)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise AttestationInvalid(f"{name} must be a JSON object.")
    return value


def _decode(value: Any, name: str) -> bytes:
    """Decode standard base64 with padding, as bundles have it."""
    if not isinstance(value, str) or not value:
        raise AttestationInvalid(f"{name} is missing.")
    try:
        return base64.b64decode(value, validate=True)
    # Not only binascii.Error: letters beyond ASCII are another.
    except ValueError as error:
        raise AttestationInvalid(f"{name} is not base64.") from error
