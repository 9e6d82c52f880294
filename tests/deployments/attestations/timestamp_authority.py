"""An RFC 3161 timestamp authority: tokens in DER, as Sigstore's writes them, without its certificates inside."""

from __future__ import annotations

import hashlib
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ObjectIdentifier

_SEQUENCE, _SET, _OCTETS, _INTEGER, _OID, _TIME = 0x30, 0x31, 0x04, 0x02, 0x06, 0x18
_SHA256 = "2.16.840.1.101.3.4.2.1"
_ECDSA_SHA256 = "1.2.840.10045.4.3.2"
_SIGNED_DATA = "1.2.840.113549.1.7.2"
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE = "1.2.840.113549.1.9.3"
_MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
_SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.47"


def token(
    message: bytes, at: datetime, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> bytes:
    """A TimeStampResp over `message`."""
    info = _tlv(
        _SEQUENCE,
        _integer(1),
        _oid("1.3.6.1.4.1.57264.2"),
        _tlv(_SEQUENCE, _algorithm(_SHA256), _tlv(_OCTETS, hashlib.sha256(message).digest())),
        _integer(7),
        _tlv(_TIME, at.strftime("%Y%m%d%H%M%SZ").encode()),
    )
    rows = [
        _attribute(_CONTENT_TYPE, _oid(_TST_INFO)),
        _attribute(_MESSAGE_DIGEST, _tlv(_OCTETS, hashlib.sha256(info).digest())),
        _attribute(_SIGNING_CERTIFICATE, _certificate_id(certificate)),
    ]
    rows.sort(key=_by_length)
    attributes = b"".join(rows)
    signature = key.sign(_tlv(_SET, attributes), ec.ECDSA(hashes.SHA256()))
    signer = _tlv(
        _SEQUENCE,
        _integer(1),
        _tlv(
            _SEQUENCE,
            certificate.issuer.public_bytes(),
            _integer(certificate.serial_number),
        ),
        _algorithm(_SHA256),
        _tlv(0xA0, attributes),
        _algorithm(_ECDSA_SHA256),
        _tlv(_OCTETS, signature),
    )
    data = _tlv(
        _SEQUENCE,
        _integer(3),
        _tlv(_SET, _algorithm(_SHA256)),
        _tlv(_SEQUENCE, _oid(_TST_INFO), _tlv(0xA0, _tlv(_OCTETS, info))),
        _tlv(_SET, signer),
    )
    return _tlv(
        _SEQUENCE,
        _tlv(_SEQUENCE, _integer(0)),
        _tlv(_SEQUENCE, _oid(_SIGNED_DATA), _tlv(0xA0, data)),
    )


def _by_length(encoded: bytes) -> tuple[int, bytes]:
    """The order of a SET in DER."""
    return len(encoded), encoded


def octets(value: bytes) -> bytes:
    return _tlv(_OCTETS, value)


def utf8(text: str) -> bytes:
    return _tlv(0x0C, text.encode())


def _certificate_id(certificate: x509.Certificate) -> bytes:
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
    return _tlv(_SEQUENCE, _tlv(_SEQUENCE, _tlv(_SEQUENCE, _tlv(_OCTETS, digest))))


def _attribute(oid: str, value: bytes) -> bytes:
    return _tlv(_SEQUENCE, _oid(oid), _tlv(_SET, value))


def _algorithm(oid: str) -> bytes:
    return _tlv(_SEQUENCE, _oid(oid))


def _oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in ObjectIdentifier(dotted).dotted_string.split("."))
    content = bytearray([40 * first + second])
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        content.extend(reversed(groups))
    return _tlv(_OID, bytes(content))


def _integer(value: int) -> bytes:
    return _tlv(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    if len(content) < 0x80:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
