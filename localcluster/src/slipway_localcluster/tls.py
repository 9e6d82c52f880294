"""TLS files, the user's token and the kubeconfig; created once and reused."""

import base64
import ipaddress
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The server's key and certificate, and the credentials of its client."""

    certificate: Path
    key: Path
    authority: Path
    token: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The files of a server on 127.0.0.1, whose certificate an authority of its own signed."""

    certificate: Path
    key: Path
    authority: Path


def certify_server(folder: Path) -> ServerFiles:
    """Make the server's certificate once, and reuse it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "server.key").exists():
        _make_certificates(folder)
    return ServerFiles(folder / "server.crt", folder / "server.key", folder / "ca.crt")


def prepare(data_dir: Path, *, port: int) -> Credentials:
    folder = data_dir / "tls"
    server = certify_server(folder)
    token_file = folder / "token"
    if not token_file.exists():
        _write_private(token_file, secrets.token_urlsafe(32).encode())
    credentials = Credentials(
        certificate=server.certificate,
        key=server.key,
        authority=server.authority,
        token=token_file.read_text(),
        kubeconfig=data_dir / "kubeconfig",
    )
    _write_kubeconfig(credentials, port)
    return credentials


def _write_kubeconfig(credentials: Credentials, port: int) -> None:
    authority = base64.b64encode(credentials.authority.read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "local", "user": {"token": credentials.token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
    }
    # JSON is YAML, and kubectl reads it as such.
    _write_private(credentials.kubeconfig, json.dumps(config, indent=2).encode() + b"\n")


def _write_private(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)


def _make_certificates(folder: Path) -> None:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certify_authority(authority_key)
    server_key = ec.generate_private_key(ec.SECP256R1())
    server = _certify_server(server_key, authority, authority_key)
    (folder / "ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / "server.crt").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    # Last, because its presence means that the files are complete.
    _write_private(
        folder / "server.key",
        server_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certify_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "slipway-local-ca")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _certify_server(
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    places = [
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.DNSName("localhost"),
        x509.DNSName("kubernetes.default.svc"),
    ]
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(name, authority.subject, key)
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issued_by, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )
