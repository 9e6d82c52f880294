"""`slipway attest` adds signatures; with --wait it says whether they are trusted, also to a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from deployments.attestations.services import trust, verification
from deployments.attestations.services.trust import SignerDraft
from deployments.models import Attestation
from portal.accounts.models import User
from slipway_client.cli import exit_codes
from tests.client.terminal import run, sign_in
from tests.deployments.attestations import signing
from tests.deployments.world import World

__all__ = ["sign_in"]


def test_signatures_are_added_and_their_verdicts_shown(
    world: World, sign_in: Callable[[User], str], tmp_path: Path
) -> None:
    sign_in(world.member)
    world.version1.files.create(path="detector.onnx", size_bytes=10, sha256="1" * 64)
    key = signing.new_key()
    trust.add_signer(actor=world.admin, draft=SignerDraft(name="ci", pem=signing.public_pem(key)))
    statement = signing.model_statement({"detector.onnx": "1" * 64})
    for name, signer in (("good.sig", key), ("bad.sig", signing.new_key())):
        (tmp_path / name).write_text(signing.signed(statement, signer))
    good, bad = str(tmp_path / "good.sig"), str(tmp_path / "bad.sig")

    added = run(["attest", "vision/detector:1", good, bad])
    verification.sweep()
    again = run(["attest", "vision/detector:1", good])

    assert added.code == 0
    assert "pending" in added.out
    assert again.code == exit_codes.REFUSED
    assert [(row.filename, row.state) for row in Attestation.objects.order_by("pk")] == [
        ("good.sig", "trusted"),
        ("bad.sig", "untrusted"),
    ]
