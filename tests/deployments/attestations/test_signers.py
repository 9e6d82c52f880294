"""Whose signature counts: keys of three curves, and certificates by issuer, identity, use and time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from deployments.attestations.domain import bundles, signers
from deployments.attestations.domain.bundles import AttestationInvalid, Envelope
from deployments.attestations.domain.signers import (
    SignatureVerdict,
    Signer,
    SignerInvalid,
    SignerKind,
)
from tests.deployments.attestations import signing

AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
FILES = {"model.onnx": "1" * 64}
EMAIL = "ci@acme.example"


def by_key(key: signing.Key, number: int = 1) -> Signer:
    return Signer(number, f"key {number}", SignerKind.KEY, signing.public_pem(key))


def by_authority(authority: signing.Authority, identity: str = EMAIL) -> Signer:
    return Signer(1, "acme", SignerKind.CERTIFICATE, authority.pem, identity)


def verdict(text: str, *trusted: Signer, at: datetime = AT) -> SignatureVerdict:
    return signers.verify(bundles.parse(json.loads(text)), trusted, at=at)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_a_key_of_each_curve_signs_statements_and_files(curve: ec.EllipticCurve) -> None:
    key, other = signing.new_key(curve), signing.new_key(curve)
    statement = signing.signed(signing.model_statement(FILES), key)
    blob = signing.signed_blob("1" * 64, key)

    assert verdict(statement, by_key(other), by_key(key, 2)).signer == by_key(key, 2)
    assert verdict(blob, by_key(key)).signer == by_key(key)
    refused = verdict(statement, by_key(other))
    assert (refused.signer, refused.reason) == (
        None,
        "None of the trusted keys made this signature.",
    )
    assert verdict(statement).signer is None


def test_rsa_and_ed25519_keys_sign_statements() -> None:
    payload = json.dumps(signing.model_statement(FILES)).encode()
    message = signers.pre_authentication(Envelope(signing.IN_TOTO, payload, ()))
    large, small = (rsa.generate_private_key(65537, bits) for bits in (2048, 1024))
    edwards = ed25519.Ed25519PrivateKey.generate()
    signatures = {
        pem(large): large.sign(message, padding.PKCS1v15(), hashes.SHA256()),
        pem(edwards): edwards.sign(message),
    }

    for public, signature in signatures.items():
        envelope = {
            "payload": signing.b64(payload),
            "payloadType": signing.IN_TOTO,
            "signatures": [{"sig": signing.b64(signature)}],
        }
        signer = Signer(1, "k", SignerKind.KEY, public)
        # Without a bundle around it, as generators of provenance write it.
        assert verdict(json.dumps(envelope), signer).signer == signer

    with pytest.raises(SignerInvalid, match="RSA of 2048 bits"):
        signers.check(SignerKind.KEY, pem(small), "")


def test_a_byte_more_or_another_type_is_another_message() -> None:
    key = signing.new_key()
    document = json.loads(signing.signed(signing.model_statement(FILES), key))
    changed: list[Any] = [json.loads(json.dumps(document)) for _ in range(2)]
    payload = json.dumps(signing.model_statement({"model.onnx": "2" * 64})).encode()
    changed[0]["dsseEnvelope"]["payload"] = signing.b64(payload)
    changed[1]["dsseEnvelope"]["payloadType"] = "text/plain"

    assert verdict(json.dumps(document), by_key(key)).signer is not None
    assert [verdict(json.dumps(one), by_key(key)).signer for one in changed] == [None, None]


def test_a_certificate_counts_by_issuer_identity_use_and_time() -> None:
    ours, theirs = signing.authority(AT), signing.authority(AT)
    key = signing.new_key()
    statement = signing.model_statement(FILES)

    def of(certificate: Any) -> str:
        return signing.signed(statement, key, [certificate])

    good = of(ours.issue(key, AT))
    results = {
        "good": verdict(good, by_authority(theirs), by_authority(ours)),
        "other issuer": verdict(good, by_authority(theirs)),
        "other identity": verdict(good, by_authority(ours, "boss@acme.example")),
        "no use named": verdict(of(ours.issue(key, AT, use=None)), by_authority(ours)),
        "for servers": verdict(
            of(ours.issue(key, AT, use=ExtendedKeyUsageOID.SERVER_AUTH)), by_authority(ours)
        ),
        "expired": verdict(good, by_authority(ours), at=AT + timedelta(days=31)),
        "a key of the same name": verdict(good, by_key(key)),
    }

    assert {name: one.signer is not None for name, one in results.items()} == {
        "good": True,
        "other issuer": False,
        "other identity": False,
        "no use named": True,
        "for servers": False,
        "expired": False,
        "a key of the same name": False,
    }
    assert results["good"].identity == EMAIL
    assert {name: one.reason for name, one in results.items() if one.reason} == {
        "other issuer": "No trusted certificate issued this one.",
        "other identity": "Its issuer is trusted, its identity is not.",
        "for servers": "The certificate is not for signing.",
        "expired": "The certificate was valid from 2026-11-25 11:00 to 2026-12-25 12:00 UTC; the "
        "attestation came later.",
        "a key of the same name": "No trusted certificate issued this one.",
    }


def test_a_leaf_cannot_issue_and_another_key_cannot_use_a_certificate() -> None:
    ours = signing.authority(AT)
    key, thief = signing.new_key(), signing.new_key()
    leaf = ours.issue(key, AT)
    forged = signing.Authority(key, leaf).issue(thief, AT)
    statement = signing.model_statement(FILES)

    chained = verdict(signing.signed(statement, thief, [forged, leaf]), by_authority(ours))

    assert chained.signer is None
    with pytest.raises(AttestationInvalid, match="does not match the certificate"):
        verdict(signing.signed(statement, thief, [leaf]), by_authority(ours))


@pytest.mark.parametrize(
    ("kind", "pem_text", "identity", "field"),
    [
        (SignerKind.KEY, "no key", "", "pem"),
        (SignerKind.KEY, "-----BEGIN PRIVATE KEY-----", "", "pem"),
        (SignerKind.KEY, "x" * 20_001, "", "pem"),
        (SignerKind.KEY, signing.public_pem(signing.new_key()), EMAIL, "identity"),
        (SignerKind.KEY, signing.public_pem(signing.new_key(ec.SECP256K1())), "", "pem"),
        (SignerKind.CERTIFICATE, "no certificate", EMAIL, "pem"),
        (SignerKind.CERTIFICATE, signing.authority(AT).pem, "", "identity"),
    ],
    ids=range(7),
)
def test_what_cannot_be_trusted_is_refused(
    kind: SignerKind, pem_text: str, identity: str, field: str
) -> None:
    with pytest.raises(SignerInvalid) as refusal:
        signers.check(kind, pem_text, identity)

    assert refusal.value.field == field


def pem(key: Any) -> str:
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return str(public.decode())
