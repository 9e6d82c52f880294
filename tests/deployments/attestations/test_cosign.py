"""What cosign 2.6.1 wrote for a file of the bytes b"data\\n" is verified here.

    cosign sign-blob --key cosign.key --tlog-upload=false --new-bundle-format --bundle blob.sigstore.json blob.bin
    cosign attest-blob --key cosign.key --tlog-upload=false --new-bundle-format --bundle provenance.sigstore.json \\
      --type slsaprovenance1 --predicate predicate.json blob.bin
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

from deployments.attestations.domain import bundles, signers, statements
from deployments.attestations.domain.bundles import Envelope, MessageSignature
from deployments.attestations.domain.signers import Signer, SignerKind
from deployments.attestations.domain.statements import Provenance, VerifiedFiles

_FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "cosign"
_SIGNER = Signer(1, "ci", SignerKind.KEY, (_FOLDER / "cosign.pub").read_text())
_FILE = VerifiedFiles({"blob.bin": hashlib.sha256(b"data\n").hexdigest()})
_OTHER = VerifiedFiles({"blob.bin": hashlib.sha256(b"other\n").hexdigest()})


def _verified(name: str) -> Envelope | MessageSignature:
    bundle = bundles.parse(json.loads((_FOLDER / name).read_text()))
    verdict = signers.verify(bundle, [_SIGNER], at=datetime(2026, 11, 25, tzinfo=UTC))
    assert verdict.signer == _SIGNER, verdict.reason
    return bundle.content


def test_a_file_that_it_signed() -> None:
    content = _verified("blob.sigstore.json")

    assert isinstance(content, MessageSignature)
    assert statements.problem_with(content, _FILE, own_sha256="") == ""
    assert statements.problem_with(content, _OTHER, own_sha256="") == (
        "It does not name the bytes of blob.bin."
    )


def test_provenance_that_it_signed() -> None:
    content = _verified("provenance.sigstore.json")

    assert isinstance(content, Envelope)
    statement = statements.parse(json.loads(content.payload))
    assert isinstance(statement, Provenance)
    assert (statement.builder, statement.source, statement.commit) == (
        "https://builder.example",
        "git+https://github.com/acme/train",
        "0123456789abcdef0123456789abcdef01234567",
    )
    assert statements.problem_with(statement, _FILE, own_sha256="") == ""
    assert statements.problem_with(statement, _OTHER, own_sha256="") != ""
