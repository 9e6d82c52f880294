"""What the real `model_signing` (OpenSSF) signs is verified here, with its keys and its certificates."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from deployments.attestations.domain import bundles, signers, statements
from deployments.attestations.domain.bundles import Envelope
from deployments.attestations.domain.signers import Signer, SignerKind
from deployments.attestations.domain.statements import VerifiedFiles
from portal.management import install
from tests.deployments.attestations import signing

_REQUIREMENTS = ("model-signing==1.1.1", "sigstore==4.5.1", "pyopenssl==26.3.0")
_WITHOUT_NETWORK = ("error sending request", "dns error", "Failed to fetch", "Could not connect")


@pytest.fixture(scope="module")
def tool() -> Path:
    """In an environment of its own, made once: the product does without its dependencies."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    digest = hashlib.sha256("\n".join([sys.version, *_REQUIREMENTS]).encode()).hexdigest()
    folder = Path(base) / "slipway" / f"model-signing-{digest[:12]}"
    if not (folder / ".installed").exists():
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *_REQUIREMENTS)
        (folder / ".installed").touch()
    return folder / "bin" / "model_signing"


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", "--no-config", *arguments]
    environment = install.uv_environment(Path(sys.executable))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and any(text in done.stderr for text in _WITHOUT_NETWORK):
        pytest.skip(f"model_signing needs a package index: {done.stderr[-500:]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(b"weights")
    (folder / "config.pbtxt").write_text("name: 'model'")
    return folder


def _write_key(key: signing.Key, folder: Path) -> Path:
    path = folder / "key.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    return path


def _sign(tool: Path, method: str, model: Path, tmp: Path, *options: str) -> str:
    signature = tmp / f"{model.name}.sig"
    command = [str(tool), "sign", method, str(model), "--signature", str(signature), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return signature.read_text()


def _artifact(model: Path) -> VerifiedFiles:
    paths = [model] if model.is_file() else [path for path in model.rglob("*") if path.is_file()]
    return VerifiedFiles(
        {
            str(path.relative_to(model)) if path != model else path.name: hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
            for path in paths
        }
    )


def _problem(text: str, signer: Signer, artifact: VerifiedFiles) -> str:
    bundle = bundles.parse(json.loads(text))
    verdict = signers.verify(bundle, [signer], at=datetime.now(UTC))
    assert verdict.signer == signer, verdict.reason
    assert isinstance(bundle.content, Envelope)
    statement = statements.parse(json.loads(bundle.content.payload))
    return statements.problem_with(statement, artifact, own_sha256="")


def test_a_folder_and_a_file_that_it_signed_with_a_key(
    tool: Path, model: Path, tmp_path: Path
) -> None:
    key = signing.new_key()
    path = _write_key(key, tmp_path)
    signer = Signer(1, "ci", SignerKind.KEY, signing.public_pem(key))

    folder = _sign(tool, "key", model, tmp_path, "--private_key", str(path))
    single = _sign(tool, "key", model / "1" / "model.onnx", tmp_path, "--private_key", str(path))

    assert _problem(folder, signer, _artifact(model)) == ""
    assert _problem(single, signer, _artifact(model / "1" / "model.onnx")) == ""
    (model / "1" / "model.onnx").write_bytes(b"other weights")
    assert _problem(folder, signer, _artifact(model)) == "It signs other bytes of 1/model.onnx."


def test_a_folder_that_it_signed_with_a_certificate(
    tool: Path, model: Path, tmp_path: Path
) -> None:
    at = datetime.now(UTC)
    key, authority = signing.new_key(), signing.authority(at)
    path, certificate = _write_key(key, tmp_path), tmp_path / "leaf.pem"
    certificate.write_bytes(authority.issue(key, at).public_bytes(Encoding.PEM))
    root = tmp_path / "root.pem"
    root.write_text(authority.pem)
    signer = Signer(1, "acme", SignerKind.CERTIFICATE, authority.pem, "ci@acme.example")

    signed = _sign(
        tool,
        "certificate",
        model,
        tmp_path,
        *("--private_key", str(path), "--signing_certificate", str(certificate)),
        *("--certificate_chain", str(root)),
    )

    assert _problem(signed, signer, _artifact(model)) == ""
