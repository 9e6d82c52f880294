"""Kubeconfig files: tokens, client certificates, and what is refused."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster import tls
from slipway_localcluster.client import kubeconfig
from slipway_localcluster.client.kubeconfig import InvalidKubeconfig


def _write(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    config = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "other", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://one", **cluster}},
            {"name": "other", "cluster": {"server": "https://two"}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    file = path / "config"
    file.write_text(json.dumps(config))
    return file


def test_the_current_or_the_named_context_is_read(tmp_path: Path) -> None:
    file = _write(tmp_path, {"token": "secret"})

    assert kubeconfig.read(file).server == "https://one"
    assert kubeconfig.read(file, "two").server == "https://two"
    assert kubeconfig.read(file).token == "secret"


def test_a_client_certificate_is_loaded_from_data_and_files(tmp_path: Path) -> None:
    credentials = tls.prepare(tmp_path, port=1)
    inline = base64.b64encode(credentials.certificate.read_bytes()).decode()
    user = {"client-certificate-data": inline, "client-key": str(credentials.key)}
    file = _write(tmp_path, user, **{"certificate-authority": "tls/ca.crt"})

    connection = kubeconfig.read(file)

    assert connection.token is None
    assert connection.tls.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(
    ("user", "context", "message"),
    [
        ({"exec": {"command": "aws"}}, None, "exec is not supported"),
        ({"token": "t"}, "three", "no context named 'three'"),
    ],
)
def test_unsupported_files_are_refused(
    tmp_path: Path, user: dict[str, Any], context: str | None, message: str
) -> None:
    with pytest.raises(InvalidKubeconfig, match=message):
        kubeconfig.read(_write(tmp_path, user), context)
