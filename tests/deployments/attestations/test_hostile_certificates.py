"""A certificate in a bundle is a stranger's: whatever is wrong with it, the worker says so and goes on."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from deployments.attestations.domain import bundles, signers
from deployments.attestations.domain.bundles import AttestationInvalid
from deployments.attestations.domain.signers import Signer, SignerKind
from deployments.attestations.services import attestations, verification
from tests.deployments.attestations import signing
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]
AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
AUTHORITY = signing.authority(AT)
KEY = signing.new_key()
GOOD = AUTHORITY.issue(KEY, AT).public_bytes(Encoding.DER)
TRUSTED = Signer(1, "acme", SignerKind.CERTIFICATE, AUTHORITY.pem, "ci@acme.example")
_EC_KEY = bytes.fromhex("06072a8648ce3d0201")
_P256 = bytes.fromhex("06082a8648ce3d030107")
_ISSUER_KEY, _USE, _NAMES = (bytes.fromhex(f"0603551d{last}") for last in ("23", "25", "11"))
_EMAIL = b"ci@acme.example"
HOSTILE = {
    "an unknown kind of key": GOOD.replace(_EC_KEY, _EC_KEY[:-1] + b"\x7f", 1),
    "an unknown curve": GOOD.replace(_P256, _P256[:-1] + b"\x7f", 1),
    "an extension twice": GOOD.replace(_ISSUER_KEY, _USE, 1),
    "names of a kind that is not read": GOOD.replace(b"\x81\x0f" + _EMAIL, b"\xa5\x0f" + _EMAIL, 1),
    "a name that is no text": GOOD.replace(_EMAIL, b"\xff" * len(_EMAIL), 1),
    "names that are no names": GOOD.replace(_ISSUER_KEY, _NAMES, 1),
    "a cut certificate": GOOD[:-40],
}


def bundle_of(certificate: bytes) -> str:
    document = json.loads(signing.signed(signing.model_statement({"detector.onnx": "1" * 64}), KEY))
    chain = {"certificates": [{"rawBytes": signing.b64(certificate)}]}
    document["verificationMaterial"] = {"x509CertificateChain": chain}
    return json.dumps(document)


def is_trusted(certificate: bytes) -> bool:
    """Whether it is; nothing else may come of it."""
    try:
        verdict = signers.verify(
            bundles.parse(json.loads(bundle_of(certificate))), [TRUSTED], at=AT
        )
    except AttestationInvalid:
        return False
    return verdict.signer is not None


def test_the_certificate_is_good_before_it_is_changed() -> None:
    assert is_trusted(GOOD)
    assert all(changed != GOOD for changed in HOSTILE.values())


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_wrong_with_a_certificate_is_an_answer(kind: str) -> None:
    assert not is_trusted(HOSTILE[kind])


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255))
def test_another_byte_anywhere_is_an_answer(place: int, value: int) -> None:
    changed = GOOD[:place] + bytes([value]) + GOOD[place + 1 :]

    assert is_trusted(changed) is (changed == GOOD)


def test_a_root_that_is_such_a_certificate_trusts_nobody() -> None:
    """It may be pasted by an admin before it is found to be wrong."""
    kept = x509.load_der_x509_certificate(HOSTILE["an extension twice"])
    odd = Signer(2, "odd", SignerKind.CERTIFICATE, kept.public_bytes(Encoding.PEM).decode(), "x@y")
    document = bundles.parse(json.loads(bundle_of(GOOD)))

    assert signers.verify(document, [odd, TRUSTED], at=AT).signer == TRUSTED


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_worker_calls_it_invalid_and_goes_on_with_the_next(world: World, kind: str) -> None:
    for number, version in enumerate((world.version1, world.version2), start=1):
        version.files.create(path="detector.onnx", size_bytes=10, sha256=f"{number}" * 64)
    bodies = (bundle_of(HOSTILE[kind]), bundle_of(GOOD))
    hostile, after = (
        attestations.add(
            actor=world.member, version_id=world.version1.pk, filename=f"{place}.sig", body=body
        )
        for place, body in enumerate(bodies)
    )

    verification.sweep()

    hostile.refresh_from_db()
    after.refresh_from_db()
    assert hostile.state in ("invalid", "untrusted")
    assert hostile.reason
    assert hostile.next_check_at is None
    assert after.state == "untrusted"
