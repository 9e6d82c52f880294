"""What tests of attestations share: signatures of the first version, signers and rules."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.attestations.services import attestations, trust, verification
from deployments.attestations.services.trust import SignerDraft, SigningRuleDraft
from deployments.changes.services import requests
from deployments.models import Attestation, ModelVersion, SigningRule, TrustedSigner
from tests.deployments.attestations import signing
from tests.deployments.world import World

SHA = "1" * 64


@pytest.fixture(autouse=True)
def with_digests(world: World) -> None:
    for number, version in enumerate((world.version1, world.version2), start=1):
        version.files.create(path="detector.onnx", size_bytes=10, sha256=f"{number}" * 64)


def signed(key: signing.Key, digest: str = SHA) -> str:
    return signing.signed(signing.model_statement({"detector.onnx": digest}), key)


def trusted(world: World, key: signing.Key, name: str = "ci", **more: Any) -> TrustedSigner:
    draft = SignerDraft(name=name, pem=signing.public_pem(key), **more)
    return trust.add_signer(actor=world.admin, draft=draft)


def added(world: World, body: str, version: ModelVersion | None = None) -> Attestation:
    row = attestations.add(
        actor=world.member,
        version_id=(version or world.version1).pk,
        filename="model.sig",
        body=body,
    )
    verification.sweep()
    row.refresh_from_db()
    return row


def rule(world: World, **fields: Any) -> SigningRule:
    return trust.make_rule(actor=world.admin, draft=SigningRuleDraft(name="signed", **fields))


def request(world: World, **more: Any) -> Any:
    return requests.request_deploy(actor=world.member, draft=world.draft(**more))
