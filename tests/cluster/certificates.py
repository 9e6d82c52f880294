"""The cluster's certificate authority, what it signs, and kubeconfigs."""

from __future__ import annotations

import base64
import ipaddress
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME = timedelta(days=2)
_LOOPBACK = ipaddress.ip_address("127.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name("slipway-test-cluster")
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = (
            self._builder(self._subject, self._key)
            .add_extension(constraints, critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / "ca.crt"
        self.path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    @property
    def bundle(self) -> str:
        """As kubeconfigs and webhook configurations hold it."""
        return base64.b64encode(self.path.read_bytes()).decode()

    def sign(self, name: str, *, group: str = "") -> KeyPair:
        """For a client of this name and group, and for a server on 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.IPAddress(_LOOPBACK), x509.DNSName("localhost")]
        certificate = (
            self._builder(_name(name, group), key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        stem = name.replace(":", "-")
        pair = KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        own_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + _LIFETIME)
            .add_extension(own_key, critical=False)
            .add_extension(issuer_key, critical=False)
        )

    def write_service_account_keys(self) -> KeyPair:
        """The public and the private key of service account tokens."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = KeyPair(self._folder / "service-accounts.pub", self._folder / "service-accounts.key")
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        pair.certificate.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, spki)
        )
        _write_key(pair.key, key)
        return pair


def write_kubeconfig(
    path: Path, *, server: str, authority: Authority, pair: KeyPair | None = None, token: str = ""
) -> Path:
    """For a client with a certificate or a token."""
    user = {"token": token}
    if pair is not None:
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    cluster = {"server": server, "certificate-authority-data": authority.bundle}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path.touch(mode=0o600)
    # JSON is YAML.
    path.write_text(json.dumps(config, indent=2))
    return path


def _name(name: str, group: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
