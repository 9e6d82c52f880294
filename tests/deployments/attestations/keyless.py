"""What tests of keyless signatures share: a trust root in the portal, and identities under it."""

from __future__ import annotations

import json
from typing import Any

from deployments.attestations.domain.signers import SignerKind
from deployments.attestations.services import roots, trust
from deployments.attestations.services.trust import SignerDraft
from deployments.models import TrustedSigner, TrustRoot
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import SHA
from tests.deployments.attestations.sigstore_instance import ISSUER, WORKFLOW, Sigstore
from tests.deployments.world import World


def instance(world: World) -> Sigstore:
    # Whole seconds, as certificates have them.
    return Sigstore(world.clock.at.replace(microsecond=0))


def rooted(world: World, sigstore: Sigstore, name: str = "acme") -> TrustRoot:
    document = json.dumps(sigstore.trusted_root())
    return roots.add(actor=world.admin, name=name, document=document)


def identity(world: World, name: str = "workflow", **more: Any) -> TrustedSigner:
    fields = {"trust_root": "acme", "issuer": ISSUER, "identity": WORKFLOW, **more}
    draft = SignerDraft(name=name, kind=SignerKind.KEYLESS, **fields)
    return trust.add_signer(actor=world.admin, draft=draft)


def model(digest: str = SHA) -> dict[str, Any]:
    return signing.model_statement({"detector.onnx": digest})
