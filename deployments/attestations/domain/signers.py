"""Whether a trusted signer made a signature: ECDSA, RSA and Ed25519 keys, and certificate chains.

Nothing is fetched, no revocation list either. A certificate must be valid when the attestation was
added. One of Sigstore's, which lives for minutes, is judged by its log (services/keyless.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeGuard

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.x509 import verification as chains
from cryptography.x509.oid import ExtendedKeyUsageOID

from deployments.attestations.domain.bundles import (
    AttestationInvalid,
    Bundle,
    Envelope,
    MessageSignature,
)

LONGEST_PEM: Final = 20_000
_MOST_ROOTS: Final = 20
_LEAST_RSA_BITS: Final = 2048
_CURVES: Final[dict[str, hashes.HashAlgorithm]] = {
    "secp256r1": hashes.SHA256(),
    "secp384r1": hashes.SHA384(),
    "secp521r1": hashes.SHA512(),
}
# What reading a certificate raises, often not before the part is read. A stranger wrote it.
UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
SigningKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


class SignerKind(StrEnum):
    KEY = "key"
    CERTIFICATE = "certificate"
    # An identity of an OIDC issuer, under a Sigstore trust root.
    KEYLESS = "keyless"


class SignerInvalid(ValueError):
    """A signer cannot be added. `field` is `pem`, `identity` or `issuer`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Signer:
    """A trusted signer. `pem` is the public key or the root certificates; empty for a keyless identity.

    `identity` is the e-mail address or URI that the signing certificate must have, empty for a key. `issuer` and
    `root_id` belong to a keyless identity.
    """

    id: int
    name: str
    kind: SignerKind
    pem: str
    identity: str = ""
    issuer: str = ""
    root_id: int | None = None


@dataclass(frozen=True, slots=True)
class SignatureVerdict:
    """The signer of a signature. `signer` is None if nobody who is trusted made it; `reason` says why.

    `identity` is what a certificate names; `issuer`, `signed_at` and `log_index` are those of a keyless signature.
    """

    signer: Signer | None
    identity: str = ""
    reason: str = ""
    issuer: str = ""
    signed_at: datetime | None = None
    log_index: int | None = None


def check(kind: SignerKind, pem: str, identity: str, *, issuer: str = "") -> None:
    """Check that a signer can be added. Raises SignerInvalid."""
    if kind == SignerKind.KEYLESS:
        _check_keyless(pem, identity, issuer)
        return
    if issuer:
        raise SignerInvalid("issuer", "Only a keyless identity has an issuer. Leave it empty.")
    if len(pem) > LONGEST_PEM:
        raise SignerInvalid("pem", f"At most {LONGEST_PEM} characters.")
    if "PRIVATE KEY" in pem:
        raise SignerInvalid("pem", "This is a private key. Paste the public one.")
    if kind == SignerKind.KEY:
        _signing_key(pem)
        if identity:
            raise SignerInvalid("identity", "A key has no identity. Leave it empty.")
        return
    _roots(pem)
    if not identity:
        raise SignerInvalid("identity", "Enter the e-mail address or URI of the certificate.")


def _check_keyless(pem: str, identity: str, issuer: str) -> None:
    if pem:
        raise SignerInvalid(
            "pem", "A keyless identity has no PEM: its trust root has the certificates."
        )
    if not identity:
        raise SignerInvalid(
            "identity", "Enter the subject: the e-mail address or URI of the signer."
        )
    if not issuer.startswith("https://"):
        raise SignerInvalid("issuer", "Enter the OIDC issuer, an https:// address.")
    if "*" in identity:
        raise SignerInvalid("identity", "Enter the whole subject: patterns are not supported.")


def verify(bundle: Bundle, signers: Iterable[Signer], *, at: datetime) -> SignatureVerdict:
    """Find the trusted signer of a signature.

    Raises AttestationInvalid if the certificates cannot be read, or if the bundle's certificate did not make the
    signature.
    """
    if not bundle.certificates:
        return _verify_by_key(bundle, [one for one in signers if one.kind == SignerKind.KEY])
    rows = [one for one in signers if one.kind == SignerKind.CERTIFICATE]
    try:
        chain = [x509.load_der_x509_certificate(der) for der in bundle.certificates]
        identity = ", ".join(sorted(_identities(chain[0])))
        verdict = _verify_by_chain(bundle, chain, rows, at)
    except AttestationInvalid:
        raise
    except UNREADABLE as error:
        raise AttestationInvalid("A certificate of the bundle cannot be read.") from error
    return replace(verdict, identity=identity)


def _verify_by_key(bundle: Bundle, signers: Sequence[Signer]) -> SignatureVerdict:
    for signer in signers:
        if _is_signed_by(_signing_key(signer.pem), bundle.content):
            return SignatureVerdict(signer)
    return SignatureVerdict(None, reason="None of the trusted keys made this signature.")


def _verify_by_chain(
    bundle: Bundle, chain: Sequence[x509.Certificate], signers: Sequence[Signer], at: datetime
) -> SignatureVerdict:
    leaf, key = chain[0], chain[0].public_key()
    if not _may_sign(leaf):
        return SignatureVerdict(None, reason="The certificate is not for signing.")
    if not _is_supported(key) or not _is_signed_by(key, bundle.content):
        raise AttestationInvalid("The signature does not match the certificate in the bundle.")
    issued = [one for one in signers if _is_issued(chain, one.pem, at)]
    trusted = [one for one in issued if one.identity in _identities(leaf)]
    if trusted:
        return SignatureVerdict(trusted[0])
    if issued:
        return SignatureVerdict(None, reason="Its issuer is trusted, its identity is not.")
    if not leaf.not_valid_before_utc <= at <= leaf.not_valid_after_utc:
        times = f"{leaf.not_valid_before_utc:%Y-%m-%d %H:%M} to {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        return SignatureVerdict(
            None, reason=f"The certificate was valid from {times}; the attestation came later."
        )
    return SignatureVerdict(None, reason="No trusted certificate issued this one.")


def _is_signed_by(key: SigningKey, content: Envelope | MessageSignature) -> bool:
    if isinstance(content, MessageSignature):
        digest = bytes.fromhex(content.sha256)
        return _is_valid(key, content.signature, digest, prehashed=True)
    message = pre_authentication(content)
    return any(_is_valid(key, row, message, prehashed=False) for row in content.signatures)


def pre_authentication(envelope: Envelope) -> bytes:
    """Return the bytes that a DSSE signature covers (PAE)."""
    kind = envelope.payload_type.encode()
    head = b"DSSEv1 %d %b %d " % (len(kind), kind, len(envelope.payload))
    return head + envelope.payload


def _is_valid(key: SigningKey, signature: bytes, message: bytes, *, prehashed: bool) -> bool:
    """Whether the key verifies the signature. A signature over one file is always one over its SHA-256, whatever
    the curve.
    """
    sha256: hashes.HashAlgorithm | utils.Prehashed = hashes.SHA256()
    if prehashed:
        sha256 = utils.Prehashed(hashes.SHA256())
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            own = sha256 if prehashed else _CURVES[key.curve.name]
            key.verify(signature, message, ec.ECDSA(own))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), sha256)
        elif prehashed:
            # Ed25519 signs the file itself, which is not at hand here.
            return False
        else:
            key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _signing_key(pem: str) -> SigningKey:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignerInvalid("pem", "This is not a public key in PEM.") from error
    if not _is_supported(key):
        raise SignerInvalid(
            "pem", f"Use ECDSA (P-256, P-384, P-521), Ed25519 or RSA of {_LEAST_RSA_BITS} bits."
        )
    return key


def _is_supported(key: PublicKeyTypes) -> TypeGuard[SigningKey]:
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key.curve.name in _CURVES
    if isinstance(key, rsa.RSAPublicKey):
        return key.key_size >= _LEAST_RSA_BITS
    return isinstance(key, ed25519.Ed25519PublicKey)


def _roots(pem: str) -> list[x509.Certificate]:
    try:
        roots = x509.load_pem_x509_certificates(pem.encode())
    except UNREADABLE as error:
        raise SignerInvalid("pem", "These are not certificates in PEM.") from error
    if len(roots) > _MOST_ROOTS:
        raise SignerInvalid("pem", f"At most {_MOST_ROOTS} certificates.")
    return roots


def _is_issued(chain: Sequence[x509.Certificate], pem: str, at: datetime) -> bool:
    """Whether one of the roots issued the certificate chain, valid at that time.

    Follows the rules of the web's certificates, except for the extended key usage.
    """
    policy = chains.ExtensionPolicy
    use = (x509.ExtendedKeyUsage, chains.Criticality.AGNOSTIC, None)
    builder = chains.PolicyBuilder().store(chains.Store(_roots(pem))).time(at)
    builder = builder.extension_policies(
        ca_policy=policy.webpki_defaults_ca().may_be_present(*use),
        ee_policy=policy.webpki_defaults_ee().may_be_present(*use),
    )
    try:
        builder.build_client_verifier().verify(chain[0], list(chain[1:]))
    except (chains.VerificationError, *UNREADABLE):
        return False
    return True


def _may_sign(leaf: x509.Certificate) -> bool:
    """Whether the certificate's key may sign code: a certificate that names its uses must name code signing."""
    try:
        usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return False
    try:
        extended = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return bool(usage.digital_signature)
    return bool(usage.digital_signature) and ExtendedKeyUsageOID.CODE_SIGNING in extended


def _identities(leaf: x509.Certificate) -> frozenset[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return frozenset((*uris, *names.get_values_for_type(x509.RFC822Name)))
