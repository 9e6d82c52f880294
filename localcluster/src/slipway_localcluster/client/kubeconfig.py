"""Reads the connection of one context from a kubeconfig file."""

import base64
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from slipway_localcluster.errors import JsonObject


class InvalidKubeconfig(Exception):
    """The file lacks something or uses an unsupported kind of credentials."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Server and credentials; a client certificate is part of `tls`. `authority`: PEM, empty where the
    system's are trusted.
    """

    server: str
    tls: ssl.SSLContext
    token: str | None
    authority: str = ""


def read(path: Path, context: str | None = None) -> Connection:
    """Read a kubeconfig. Supports a CA, and a token or a client certificate, inline or as files."""
    config = yaml.safe_load(path.read_text())
    chosen = _named(config, "context", context or config.get("current-context"))
    cluster = _named(config, "cluster", chosen["cluster"])
    user = _named(config, "user", chosen["user"])
    if unsupported := {"exec", "auth-provider", "username"} & user.keys():
        raise InvalidKubeconfig(f"{path}: {', '.join(sorted(unsupported))} is not supported")
    authority = (_content(cluster, "certificate-authority", path.parent) or b"").decode()
    tls = ssl.create_default_context(cadata=authority or None)
    certificate = _content(user, "client-certificate", path.parent)
    key = _content(user, "client-key", path.parent)
    if certificate and key:
        _load_client_certificate(tls, certificate, key)
    return Connection(str(cluster["server"]), tls, user.get("token"), authority)


def _named(config: JsonObject, field: str, name: str | None) -> JsonObject:
    listed: Iterable[JsonObject] = config.get(f"{field}s") or ()
    entry = next((item[field] for item in listed if item["name"] == name), None)
    if entry is None:
        raise InvalidKubeconfig(f"no {field} named {name!r}")
    return dict(entry)


def _content(entry: JsonObject, field: str, directory: Path) -> bytes | None:
    """Return the inline `FIELD-data`, or the file that `FIELD` names."""
    if entry.get(f"{field}-data"):
        return base64.b64decode(entry[f"{field}-data"])
    return (directory / entry[field]).read_bytes() if entry.get(field) else None


def _load_client_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate, which the ssl module reads from files only."""
    with TemporaryDirectory() as folder:
        certificate_file, key_file = Path(folder) / "certificate", Path(folder) / "key"
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key)
        tls.load_cert_chain(certificate_file, key_file)
