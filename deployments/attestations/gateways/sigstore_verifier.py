"""Verify keyless signatures with Sigstore's own library, without any request to Fulcio, Rekor or TUF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError

from deployments.attestations.domain import fulcio, log_entries, trust_roots
from deployments.attestations.domain.bundles import AttestationInvalid, Envelope, MessageSignature
from deployments.attestations.domain.fulcio import Identity
from deployments.attestations.domain.log_entries import Claims, NotProved
from deployments.attestations.domain.trust_roots import TrustRootInvalid

if TYPE_CHECKING:
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.verify import Verifier

_TRUST_CONFIG: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
_SIGNING_CONFIG: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"
_LONGEST_REASON: Final = 200
# Beginnings of the library's messages, and what they mean.
_REASONS: Final = (
    ("not enough sources of verified time", "none of its timestamps is one of the trust root's"),
    ("failed to build timestamp certificate chain", "{certificate}"),
    ("failed to verify SCT", "no certificate log of the trust root recorded its certificate"),
    (
        "invalid signing cert: expired",
        "the certificate was not valid when it was signed ({signed})",
    ),
    ("invalid log entry: SET", "the log did not sign the time of its entry"),
    (
        "invalid log entry: checkpoint",
        "no transparency log of the trust root signed the checkpoint of its entry",
    ),
    ("invalid log entry", "the proof and checkpoint do not show that its entry is in the log"),
    ("transparency log entry is inconsistent", "its log entry belongs to another signature"),
    ("log entry ", "its log entry belongs to another signature"),
    ("no Timestamp Authorities", "the trust root has no timestamp authority for its timestamp"),
    (
        "Integrated time only supported",
        "its log entry is of a kind that cannot be verified; sign with --new-bundle-format",
    ),
    ("Unsupported", "its log entry is of a kind that cannot be verified"),
)


@dataclass(frozen=True, slots=True)
class Proof:
    """A verified keyless signature. `signed_at` is None if several timestamps give the time."""

    identity: Identity
    signed_at: datetime | None
    log_index: int | None


def verify(
    document: Mapping[str, Any], content: Envelope | MessageSignature, root: Mapping[str, Any]
) -> Proof:
    """Return the identity in the bundle's certificate, if the authorities and logs of the trust root vouch for it.

    `content` is that of the same bundle. Raises NotProved, and AttestationInvalid for what cannot be read.
    """
    document = log_entries.without_aliases(document)
    claims = log_entries.read(document)
    if isinstance(content, Envelope) and len(content.signatures) != 1:
        raise NotProved(
            f"A keyless envelope has one signature, this one has {len(content.signatures)}."
        )
    try:
        times = _times(claims)
        return _verify(document, content, root, claims, times)
    except (NotProved, AttestationInvalid):
        raise
    # A stranger wrote the bundle, and the library lets errors of many kinds out while it reads one.
    except Exception as error:
        raise AttestationInvalid(
            f"The bundle cannot be verified: {_line(error) or type(error).__name__}."
        ) from error


def check_root(document: Mapping[str, Any]) -> None:
    """Check that the library can use the trust root. Raises TrustRootInvalid if not."""
    try:
        _verifier(document)
    except Exception as error:
        raise TrustRootInvalid(f"Sigstore cannot read it: {_line(error)}.") from error


def _verify(
    document: Mapping[str, Any],
    content: Envelope | MessageSignature,
    root: Mapping[str, Any],
    claims: Claims,
    times: tuple[datetime, ...],
) -> Proof:
    from sigstore.errors import Error  # noqa: PLC0415  web processes do without it
    from sigstore.models import Bundle  # noqa: PLC0415  as above

    if not times:
        raise NotProved("Neither its log entry nor a timestamp proves when it was signed.")
    bundle = Bundle.from_json(json.dumps(document))
    certificate = bundle.signing_certificate
    if not isinstance(certificate.public_key(), ec.EllipticCurvePublicKey):
        raise NotProved("Keyless signatures are verified with ECDSA keys only.")
    usable = trust_roots.at(root, times)
    if lacking := trust_roots.missing_of(usable):
        raise NotProved(f"The trust root had no {lacking} in use at {_written(times)}.")
    if claims.log_id not in trust_roots.log_ids(usable):
        raise NotProved(
            f"Its log entry is of a log that the trust root did not have in use at {_written(times)}."
        )
    witness = _Witness()
    try:
        _verify_content(_verifier(usable), bundle, content, witness)
    except Error as error:
        raise NotProved(_reason(error, certificate, times)) from error
    identity = witness.identity
    if identity is None:
        raise NotProved("Its certificate names no OIDC issuer.")
    return Proof(identity, _signed_at(claims, times), claims.log_index)


class _Witness:
    """A verification policy that accepts any identity and keeps it. Whether it is trusted is decided when all else
    holds.
    """

    identity: Identity | None = None

    def verify(self, cert: x509.Certificate) -> None:
        self.identity = fulcio.identity_of(cert)


def _verify_content(
    verifier: Verifier, bundle: Bundle, content: Envelope | MessageSignature, witness: _Witness
) -> None:
    from sigstore.hashes import Hashed  # noqa: PLC0415  web processes do without it
    from sigstore_models.common.v1 import HashAlgorithm  # noqa: PLC0415  as above

    if isinstance(content, MessageSignature):
        digest = bytes.fromhex(content.sha256)
        hashed = Hashed(algorithm=HashAlgorithm.SHA2_256, digest=digest)
        verifier.verify_artifact(hashed, bundle, witness)
    elif verifier.verify_dsse(bundle, witness) != (content.payload_type, content.payload):
        raise AttestationInvalid("The bundle has two payloads.")


def _verifier(root: Mapping[str, Any]) -> Verifier:
    from sigstore.verify import Verifier  # noqa: PLC0415  web processes do without it

    return Verifier(trusted_root=_trusted_root(root))


def _trusted_root(root: Mapping[str, Any]) -> TrustedRoot:
    """Read the trust root from text by a client configuration, because the library reads a root alone only from a
    file.
    """
    from sigstore.models import ClientTrustConfig  # noqa: PLC0415  web processes do without it

    config = {
        "mediaType": _TRUST_CONFIG,
        "trustedRoot": root,
        "signingConfig": {"mediaType": _SIGNING_CONFIG},
    }
    return ClientTrustConfig.from_json(json.dumps(config)).trusted_root


def _times(claims: Claims) -> tuple[datetime, ...]:
    from rfc3161_client import decode_timestamp_response  # noqa: PLC0415  web processes do without it

    stamps = [decode_timestamp_response(one).tst_info.gen_time for one in claims.timestamps]
    return (*([claims.integrated_at] if claims.integrated_at else []), *stamps)


def _signed_at(claims: Claims, times: tuple[datetime, ...]) -> datetime | None:
    """Return when it was signed: the time of the log, which is always verified, or the only timestamp.

    None if there are several timestamps, since some may be of strangers.
    """
    return claims.integrated_at or (times[0] if len(times) == 1 else None)


def _reason(error: Exception, certificate: x509.Certificate, times: tuple[datetime, ...]) -> str:
    text = _line(error)
    known = next((meaning for start, meaning in _REASONS if text.startswith(start)), text)
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    reason = "no authority of the trust root issued its certificate"
    if not all(since <= at <= until for at in times):
        reason = (
            f"the certificate was valid from {since:%Y-%m-%d %H:%M} to {until:%H:%M} UTC, and it was signed "
            f"at {_written(times)}"
        )
    sentence = known.format(certificate=reason, signed=_written(times)) if known != text else text
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _written(times: tuple[datetime, ...]) -> str:
    return " and ".join(f"{at:%Y-%m-%d %H:%M} UTC" for at in times)


def _line(error: Exception) -> str:
    """Return the error on one line, without what a stranger could make long."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"[:_LONGEST_REASON]
    text = " ".join(str(error.args[0] if error.args else error).split())
    return text[:_LONGEST_REASON].rstrip(".")
