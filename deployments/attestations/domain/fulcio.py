"""The identity in a certificate of Fulcio: the subject, and the OIDC issuer that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat import asn1

from deployments.attestations.domain.bundles import AttestationInvalid

# https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
# As it was written first: the bytes of the text, without their type.
_OLD_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_USERNAME: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.7")


@dataclass(frozen=True, slots=True)
class Identity:
    issuer: str
    subject: str


def identity_of(certificate: x509.Certificate) -> Identity | None:
    """Return the OIDC issuer and the subject of a certificate of Fulcio.

    None if it names no OIDC issuer. Raises AttestationInvalid if it names several issuers or subjects, and what
    `cryptography` raises for extensions that cannot be read.
    """
    issuers = {
        issuer
        for issuer in (_text(certificate, _ISSUER, is_der=True), _text(certificate, _OLD_ISSUER))
        if issuer
    }
    if not issuers:
        return None
    subjects = _subjects(certificate)
    if len(issuers) > 1 or len(subjects) != 1:
        raise AttestationInvalid("The certificate must name one issuer and one subject.")
    return Identity(issuers.pop(), subjects[0])


def _text(
    certificate: x509.Certificate, oid: x509.ObjectIdentifier, *, is_der: bool = False
) -> str:
    try:
        extension = certificate.extensions.get_extension_for_oid(oid).value
    except x509.ExtensionNotFound:
        return ""
    value = extension.value if isinstance(extension, x509.UnrecognizedExtension) else b""
    return asn1.decode_der(str, value) if is_der else value.decode()


def _subjects(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    others = names.get_values_for_type(x509.OtherName)
    return [
        *names.get_values_for_type(x509.UniformResourceIdentifier),
        *names.get_values_for_type(x509.RFC822Name),
        *(asn1.decode_der(str, one.value) for one in others if one.type_id == _USERNAME),
    ]
