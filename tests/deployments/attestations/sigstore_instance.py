"""A Sigstore of its own: certificate authority, certificate log, transparency log and timestamp authority,
and keyless bundles as cosign (v0.3, message signatures) and `model_signing` (DSSE) write them with it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.deployments.attestations import signing, timestamp_authority
from tests.deployments.attestations.signing import Key, b64, new_key
from tests.deployments.attestations.transparency_log import ECDSA, Log, log_id, public_der

ISSUER = "https://token.actions.githubusercontent.com"
WORKFLOW = "https://github.com/acme/train/.github/workflows/train.yml@refs/heads/main"
ROOT = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"
_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_OLD_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_SCTS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


@dataclass
class Sigstore:
    """In use since a year before `at`. `until`: when its transparency log was retired."""

    at: datetime
    until: datetime | None = None
    log: Log = field(default_factory=Log)
    certificate_log: Key = field(default_factory=new_key)
    # Certificates and keys, the issuing one first.
    authority: list[tuple[x509.Certificate, Key]] = field(default_factory=list)
    timestamps: list[tuple[x509.Certificate, Key]] = field(default_factory=list)

    def __post_init__(self) -> None:
        root = _ca(self.at, "acme root")
        self.authority = [_ca(self.at, "acme intermediate", root), root]
        tsa_root = _ca(self.at, "acme tsa root")
        self.timestamps = [_tsa(self.at, tsa_root), tsa_root]

    def trusted_root(self) -> dict[str, Any]:
        return {
            "mediaType": ROOT,
            "tlogs": [self._log(self.log.key, "https://rekor.acme.example", self.until)],
            "ctlogs": [self._log(self.certificate_log, "https://ctfe.acme.example/test")],
            "certificateAuthorities": [self._authority("fulcio", self.authority)],
            "timestampAuthorities": [self._authority("tsa", self.timestamps)],
        }

    def certificate(
        self,
        key: Key,
        at: datetime,
        *,
        subject: str = WORKFLOW,
        issuer: str = ISSUER,
    ) -> x509.Certificate:
        """For ten minutes from `at`."""
        ca, ca_key = self.authority[0]
        is_address = "@" in subject and "://" not in subject
        name = x509.RFC822Name(subject) if is_address else x509.UniformResourceIdentifier(subject)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(at)
            .not_valid_after(at + timedelta(minutes=10))
            .add_extension(_usage(), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
        )
        for oid, value in (
            (_OLD_ISSUER, issuer.encode()),
            (_ISSUER, timestamp_authority.utf8(issuer)),
        ):
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, value), critical=False)
        builder = self._logged(builder, ca, ca_key, at)
        return builder.sign(ca_key, hashes.SHA256())

    def blob(self, sha256: str, at: datetime, *, is_v2: bool = False, **names: str) -> str:
        """As `cosign sign-blob`: a message signature."""
        key, digest = new_key(), bytes.fromhex(sha256)
        certificate = self.certificate(key, at, **names)
        signature = key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
        message = {
            "messageDigest": {"algorithm": "SHA2_256", "digest": b64(digest)},
            "signature": b64(signature),
        }
        body = _hashedrekord_2(digest, signature, certificate) if is_v2 else None
        body = body or _hashedrekord_1(sha256, signature, certificate)
        return self._bundle({"messageSignature": message}, certificate, body, signature, at, is_v2)

    def statement(
        self,
        statement: Any,
        at: datetime,
        *,
        is_v2: bool = False,
        payload_type: str = signing.IN_TOTO,
        **names: str,
    ) -> str:
        """As `model_signing sign sigstore`: an in-toto statement in a DSSE envelope."""
        key = new_key()
        certificate = self.certificate(key, at, **names)
        envelope = signing.envelope(statement, key, payload_type)
        raw = signing.from_b64(envelope["signatures"][0]["sig"])
        envelope["signatures"] = [{"sig": b64(raw)}]
        payload = signing.from_b64(envelope["payload"])
        if is_v2:
            pae = signing.pae(payload_type, payload)
            body = _hashedrekord_2(hashlib.sha256(pae).digest(), raw, certificate)
        else:
            body = _dsse_1(envelope, payload, certificate)
        return self._bundle({"dsseEnvelope": envelope}, certificate, body, raw, at, is_v2)

    def timestamp(self, message: bytes, at: datetime) -> bytes:
        certificate, key = self.timestamps[0]
        return timestamp_authority.token(message, at, certificate, key)

    def _bundle(
        self,
        content: Mapping[str, Any],
        certificate: x509.Certificate,
        body: Mapping[str, Any],
        signature: bytes,
        at: datetime,
        is_v2: bool,
    ) -> str:
        signed_at = at + timedelta(minutes=1)
        entry = self.log.add(body, None if is_v2 else signed_at)
        stamps = [{"signedTimestamp": b64(self.timestamp(signature, signed_at))}] if is_v2 else []
        material = {
            "certificate": {"rawBytes": b64(certificate.public_bytes(Encoding.DER))},
            "tlogEntries": [entry],
            "timestampVerificationData": {"rfc3161Timestamps": stamps},
        }
        document = {"mediaType": signing.BUNDLE, "verificationMaterial": material, **content}
        return json.dumps(document)

    def _logged(
        self, builder: x509.CertificateBuilder, ca: x509.Certificate, ca_key: Key, at: datetime
    ) -> x509.CertificateBuilder:
        """With the timestamp of the certificate log, over what is signed without it."""
        bare = builder.sign(ca_key, hashes.SHA256()).tbs_certificate_bytes
        issuer = hashlib.sha256(
            ca.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        ).digest()
        milliseconds = int(at.timestamp() * 1000)
        size = struct.pack("!I", len(bare))[1:]
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + issuer + size + bare + b"\0\0"
        signature = self.certificate_log.sign(signed, ECDSA)
        head = b"\0" + log_id(self.certificate_log) + struct.pack("!QH", milliseconds, 0)
        one = head + struct.pack("!BBH", 4, 3, len(signature)) + signature
        scts = struct.pack("!HH", len(one) + 2, len(one)) + one
        value = x509.UnrecognizedExtension(_SCTS, timestamp_authority.octets(scts))
        return builder.add_extension(value, critical=False)

    def _log(self, key: Key, url: str, until: datetime | None = None) -> dict[str, Any]:
        return {
            "baseUrl": url,
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": b64(public_der(key)),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": self._window(until),
            },
            "logId": {"keyId": b64(log_id(key))},
        }

    def _authority(self, name: str, chain: Sequence[tuple[x509.Certificate, Key]]) -> Any:
        rows = [{"rawBytes": b64(cert.public_bytes(Encoding.DER))} for cert, _ in chain]
        return {
            "subject": {"organization": "acme", "commonName": name},
            "uri": f"https://{name}.acme.example",
            "certChain": {"certificates": rows},
            "validFor": self._window(None),
        }

    def _window(self, until: datetime | None) -> dict[str, str]:
        window = {"start": _rfc3339(self.at - timedelta(days=365))}
        return {**window, "end": _rfc3339(until)} if until else window


def _rfc3339(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _pem(certificate: x509.Certificate) -> str:
    return b64(certificate.public_bytes(Encoding.PEM))


def _hashedrekord_1(sha256: str, signature: bytes, certificate: x509.Certificate) -> dict[str, Any]:
    public = {"content": _pem(certificate)}
    spec = {
        "data": {"hash": {"algorithm": "sha256", "value": sha256}},
        "signature": {"content": b64(signature), "publicKey": public},
    }
    return {"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}


def _hashedrekord_2(
    digest: bytes, signature: bytes, certificate: x509.Certificate
) -> dict[str, Any]:
    verifier = {
        "keyDetails": "PKIX_ECDSA_P256_SHA_256",
        "x509Certificate": {"rawBytes": b64(certificate.public_bytes(Encoding.DER))},
    }
    spec = {
        "data": {"algorithm": "SHA2_256", "digest": b64(digest)},
        "signature": {"content": b64(signature), "verifier": verifier},
    }
    return {"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": spec}}


def _dsse_1(
    envelope: Mapping[str, Any], payload: bytes, certificate: x509.Certificate
) -> dict[str, Any]:
    def digest(data: bytes) -> dict[str, str]:
        return {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}

    rows = [
        {"signature": row["sig"], "verifier": _pem(certificate)} for row in envelope["signatures"]
    ]
    spec = {
        "envelopeHash": digest(json.dumps(envelope).encode()),
        "payloadHash": digest(payload),
        "signatures": rows,
    }
    return {"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}


def _ca(
    at: datetime, name: str, issuer: tuple[x509.Certificate, Key] | None = None
) -> tuple[x509.Certificate, Key]:
    key = new_key()
    builder = _named(at, name, key, issuer[0].subject if issuer else None)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    return _issued(builder, issuer, key), key


def _tsa(at: datetime, issuer: tuple[x509.Certificate, Key]) -> tuple[x509.Certificate, Key]:
    key = new_key()
    builder = _named(at, "acme tsa", key, issuer[0].subject)
    builder = builder.add_extension(_usage(), critical=True)
    use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
    return _issued(builder.add_extension(use, critical=True), issuer, key), key


def _issued(
    builder: x509.CertificateBuilder, issuer: tuple[x509.Certificate, Key] | None, key: Key
) -> x509.Certificate:
    if issuer is not None:
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer[1].public_key())
        builder = builder.add_extension(authority, critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256())


def _named(at: datetime, name: str, key: Key, issuer: x509.Name | None) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer or subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    begin = at - timedelta(days=365)
    return builder.not_valid_before(begin).not_valid_after(begin + timedelta(days=3650))


def _usage(*, signs_certificates: bool = False) -> x509.KeyUsage:
    rest = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        **rest,
    )
