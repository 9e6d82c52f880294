"""A PEM bundle of CA certificates: parsed, and checked for what keeps it from being trusted."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

MAX_BYTES: Final = 64_000
MAX_CERTIFICATES: Final = 20
_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


class BadBundle(ValueError):
    """The message says how to fix the bundle and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of a bundle. `fingerprint` is the SHA-256 of its DER form, as `openssl x509 -fingerprint
    -sha256` writes it.
    """

    subject: str
    fingerprint: str
    expires_at: datetime


def normalize(pem: str) -> str:
    """Return the bundle without blank lines and with Unix line ends, so that equal bundles compare equal."""
    return "\n".join(line.strip() for line in pem.splitlines() if line.strip())


def parse(pem: str) -> tuple[Certificate, ...]:
    """Parse the certificates, in the bundle's order. Raises BadBundle."""
    if "PRIVATE KEY" in pem:
        raise BadBundle("it contains a private key: paste only the certificates")
    if len(pem) > MAX_BYTES:
        raise BadBundle(
            f"at most {MAX_BYTES:,} characters; paste only the authority of this server"
        )
    blocks = _BLOCK.findall(pem)
    if not 1 <= len(blocks) <= MAX_CERTIFICATES:
        raise BadBundle(
            f"1 to {MAX_CERTIFICATES} certificates, each from BEGIN CERTIFICATE to END CERTIFICATE"
        )
    if _BLOCK.sub("", pem).strip():
        raise BadBundle("it contains more than certificates: paste only the certificates")
    return tuple(_certificate(block) for block in blocks)


def describe_expired(certificates: tuple[Certificate, ...], *, now: datetime) -> str:
    """Describe the expired certificates; empty when none has expired."""
    past = [certificate for certificate in certificates if certificate.expires_at <= now]
    return "; ".join(
        f"{certificate.subject} expired on {certificate.expires_at:%Y-%m-%d}"
        for certificate in past
    )


def _certificate(block: str) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        der = ssl.PEM_cert_to_DER_cert(block)
        context.load_verify_locations(cadata=block)
    except (ValueError, ssl.SSLError) as error:
        raise BadBundle("a certificate in it could not be read: copy it in full") from error
    parsed: list[Mapping[str, Any]] = list(context.get_ca_certs())
    if not parsed:
        raise BadBundle(
            "it contains a server certificate: paste the certificate of its authority instead"
        )
    digest = hashlib.sha256(der).hexdigest().upper()
    seconds = ssl.cert_time_to_seconds(parsed[0]["notAfter"])
    return Certificate(
        subject=_subject(parsed[0]),
        fingerprint=":".join(digest[start : start + 2] for start in range(0, len(digest), 2)),
        expires_at=datetime.fromtimestamp(seconds, UTC),
    )


def _subject(parsed: Mapping[str, Any]) -> str:
    parts = {name: value for group in parsed["subject"] for name, value in group}
    return str(parts.get("commonName") or parts.get("organizationName") or "unnamed")[:200]
