"""Keys, an authority, and bundles as `model_signing`, cosign and SLSA generators write them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deployments.attestations.domain.bundles import Envelope
from deployments.attestations.domain.signers import pre_authentication

IN_TOTO = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
BUILDER = "https://github.com/acme/train/.github/workflows/train.yml@refs/heads/main"
SOURCE = "git+https://github.com/acme/train@refs/heads/main"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
Key = ec.EllipticCurvePrivateKey


def new_key(curve: ec.EllipticCurve | None = None) -> Key:
    return ec.generate_private_key(curve or ec.SECP256R1())


def public_pem(key: Key) -> str:
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_b64(text: str) -> bytes:
    return base64.b64decode(text)


def pae(payload_type: str, payload: bytes) -> bytes:
    return pre_authentication(Envelope(payload_type, payload, ()))


def model_statement(files: Mapping[str, str], **serialization: Any) -> dict[str, Any]:
    """What `model_signing` signs: all files by path, and the digest of their digests as the subject."""
    rows = [{"name": n, "algorithm": "sha256", "digest": d} for n, d in sorted(files.items())]
    root = hashlib.sha256(b"".join(bytes.fromhex(row["digest"]) for row in rows)).hexdigest()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {"sha256": root}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", **serialization},
            "resources": rows,
        },
    }


def provenance(digests: Sequence[str], builder: str = BUILDER) -> dict[str, Any]:
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": f"file{n}", "digest": {"sha256": d}} for n, d in enumerate(digests)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://actions.github.io/buildtypes/workflow/v1",
                "resolvedDependencies": [{"uri": SOURCE, "digest": {"gitCommit": COMMIT}}],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }


def envelope(statement: Any, key: Key, payload_type: str = IN_TOTO) -> dict[str, Any]:
    payload = json.dumps(statement).encode()
    hashed = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.key_size]
    signed = key.sign(pae(payload_type, payload), ec.ECDSA(hashed))
    return {
        "payload": b64(payload),
        "payloadType": payload_type,
        "signatures": [{"sig": b64(signed), "keyid": ""}],
    }


def bundle(content: Mapping[str, Any], certificates: Sequence[x509.Certificate] = ()) -> str:
    chain = [{"rawBytes": b64(cert.public_bytes(Encoding.DER))} for cert in certificates]
    material: dict[str, Any] = {"publicKey": {"hint": "x"}, "tlogEntries": []}
    if chain:
        material = {"x509CertificateChain": {"certificates": chain}, "tlogEntries": []}
    return json.dumps({"mediaType": BUNDLE, "verificationMaterial": material, **content})


def signed(
    statement: Any, key: Key, certificates: Sequence[x509.Certificate] = (), **more: Any
) -> str:
    return bundle({"dsseEnvelope": envelope(statement, key, **more)}, certificates)


def signed_blob(sha256: str, key: Key) -> str:
    """As `cosign sign-blob --bundle`."""
    digest = bytes.fromhex(sha256)
    signature = key.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
    message = {
        "messageDigest": {"algorithm": "SHA2_256", "digest": b64(digest)},
        "signature": b64(signature),
    }
    return bundle({"messageSignature": message})


@dataclass
class Authority:
    key: Key
    root: x509.Certificate

    @property
    def pem(self) -> str:
        return self.root.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        key: Key,
        at: datetime,
        *,
        email: str = "ci@acme.example",
        use: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.CODE_SIGNING,
        days: float = 30,
    ) -> x509.Certificate:
        builder = _builder(at, "signer", self.root.subject, days)
        builder = builder.public_key(key.public_key())
        builder = builder.add_extension(_usage(signs=True), critical=True)
        if use is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        names = x509.SubjectAlternativeName([x509.RFC822Name(email)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(names, critical=False)
        return builder.add_extension(issuer, critical=False).sign(self.key, hashes.SHA256())


def authority(at: datetime) -> Authority:
    key = new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    builder = _builder(at, "root", name, 3650).public_key(key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    return Authority(key, builder.sign(key, hashes.SHA256()))


def _builder(at: datetime, name: str, issuer: x509.Name, days: float) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(issuer)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = builder.subject_name(subject).serial_number(x509.random_serial_number())
    begin = at - timedelta(hours=1)
    return builder.not_valid_before(begin).not_valid_after(at + timedelta(days=days))


def _usage(*, signs: bool) -> x509.KeyUsage:
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
        digital_signature=signs, key_cert_sign=not signs, crl_sign=not signs, **rest
    )
