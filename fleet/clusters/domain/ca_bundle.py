"""A bundle of certificates as PEM: what is in it, and what keeps it from being trusted."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

MOST_BYTES: Final = 64_000
MOST_CERTIFICATES: Final = 20
_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


class BadBundle(ValueError):
    """The message says how to mend it, and repeats nothing of the bundle."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """`fingerprint`: SHA-256 of the DER form, as `openssl x509 -fingerprint -sha256` writes it."""

    subject: str
    fingerprint: str
    expires_at: datetime


def plain(pem: str) -> str:
    """The same bundle however its lines ended."""
    return "\n".join(line.strip() for line in pem.splitlines() if line.strip())


def read(pem: str) -> tuple[Certificate, ...]:
    """In the bundle's order. Raises BadBundle."""
    if "PRIVATE KEY" in pem:
        raise BadBundle("it contains a private key: paste only the certificates")
    if len(pem) > MOST_BYTES:
        raise BadBundle(
            f"at most {MOST_BYTES:,} characters; paste only the authority of this server"
        )
    blocks = _BLOCK.findall(pem)
    if not 1 <= len(blocks) <= MOST_CERTIFICATES:
        raise BadBundle(
            f"1 to {MOST_CERTIFICATES} certificates, each from BEGIN CERTIFICATE to END CERTIFICATE"
        )
    if _BLOCK.sub("", pem).strip():
        raise BadBundle("it contains more than certificates: paste only the certificates")
    return tuple(_certificate(block) for block in blocks)


def expired(certificates: tuple[Certificate, ...], *, now: datetime) -> str:
    """Which has ended, in words; empty when none has."""
    gone = [one for one in certificates if one.expires_at <= now]
    return "; ".join(f"{one.subject} expired on {one.expires_at:%Y-%m-%d}" for one in gone)


def _certificate(block: str) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        der = ssl.PEM_cert_to_DER_cert(block)
        context.load_verify_locations(cadata=block)
    except (ValueError, ssl.SSLError) as error:
        raise BadBundle("a certificate in it could not be read: copy it in full") from error
    found: list[Mapping[str, Any]] = list(context.get_ca_certs())
    if not found:
        raise BadBundle(
            "it contains a server certificate: paste the certificate of its authority instead"
        )
    digest = hashlib.sha256(der).hexdigest().upper()
    seconds = ssl.cert_time_to_seconds(found[0]["notAfter"])
    return Certificate(
        subject=_subject(found[0]),
        fingerprint=":".join(digest[start : start + 2] for start in range(0, len(digest), 2)),
        expires_at=datetime.fromtimestamp(seconds, UTC),
    )


def _subject(found: Mapping[str, Any]) -> str:
    parts = {name: value for group in found["subject"] for name, value in group}
    return str(parts.get("commonName") or parts.get("organizationName") or "unnamed")[:200]
