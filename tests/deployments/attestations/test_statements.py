"""What a signed statement must say of the version's files, and documents that are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.attestations.domain import bundles, statements
from deployments.attestations.domain.bundles import AttestationInvalid, MessageSignature
from deployments.attestations.domain.statements import Provenance, VerifiedFiles
from tests.deployments.attestations import signing

A, B, C = "a" * 64, "b" * 64, "c" * 64
TWO = VerifiedFiles({"1/model.onnx": A, "config.pbtxt": B})


def problem(statement: Any, artifact: VerifiedFiles = TWO, own: str = C) -> str:
    parsed = statements.parse(statement)
    return statements.problem_with(parsed, artifact, own_sha256=own)


def test_a_model_signature_names_exactly_the_files() -> None:
    signed = signing.model_statement

    assert problem(signed({"1/model.onnx": A, "config.pbtxt": B})) == ""
    assert problem(signed({"1/model.onnx": A})) == "It does not sign config.pbtxt."
    assert problem(signed({"1/model.onnx": A, "config.pbtxt": C})) == (
        "It signs other bytes of config.pbtxt."
    )
    assert problem(signed({"1/model.onnx": A, "config.pbtxt": B, "x": C})) == (
        "It signs x, which the version does not have."
    )


def test_the_signature_itself_and_files_of_git_need_no_signature() -> None:
    files = {"1/model.onnx": A, "config.pbtxt": B}
    statement = signing.model_statement(files, ignore_paths=[".gitattributes", "weights.bin"])

    with_git = VerifiedFiles({**TWO.files, "model.sig": C, ".gitattributes": A})
    with_weights = VerifiedFiles({**TWO.files, "weights.bin": A})

    assert problem(statement, with_git) == ""
    assert problem(signing.model_statement(files), with_git) == ("It does not sign .gitattributes.")
    # The signer may not leave out what a server reads.
    assert problem(statement, with_weights) == "It does not sign weights.bin."


def test_a_single_file_counts_by_its_bytes() -> None:
    one = VerifiedFiles({"detector.onnx": A})

    assert problem(signing.model_statement({".": A}), one) == ""
    assert problem(signing.model_statement({".": B}), one) == (
        "It signs other bytes than those of detector.onnx."
    )
    assert statements.problem_with(MessageSignature(A, b""), one, own_sha256=C) == ""
    assert statements.problem_with(MessageSignature(A, b""), TWO, own_sha256=C) == (
        "It does not name the bytes of config.pbtxt."
    )


def test_provenance_names_every_file_or_the_archive() -> None:
    archived = VerifiedFiles(TWO.files, archive_sha256=C)

    assert problem(signing.provenance([A, B])) == ""
    assert problem(signing.provenance([A])) == "It does not name the bytes of config.pbtxt."
    assert problem(signing.provenance([C]), archived, own="d" * 64) == ""
    assert statements.parse(signing.provenance([A])) == Provenance(
        frozenset({A}),
        builder=signing.BUILDER,
        build_type="https://actions.github.io/buildtypes/workflow/v1",
        source=signing.SOURCE,
        commit=signing.COMMIT,
    )


def test_provenance_of_slsa_0_2_is_read_too() -> None:
    statement = {
        "_type": "https://in-toto.io/Statement/v0.1",
        "subject": [{"name": "m", "digest": {"sha256": A}}],
        "predicateType": "https://slsa.dev/provenance/v0.2",
        "predicate": {
            "builder": {"id": "https://builder"},
            "buildType": "make",
            "invocation": {"configSource": {"uri": "git+x", "digest": {"sha1": "12ab"}}},
        },
    }

    assert statements.parse(statement) == Provenance(
        frozenset({A}), builder="https://builder", build_type="make", source="git+x", commit="12ab"
    )


def _changed(**fields: Any) -> Any:
    return {**signing.model_statement({"m": A}), **fields}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ([], "not an in-toto statement"),
        (_changed(_type="x"), "not an in-toto statement"),
        (_changed(subject=[]), "no subject"),
        (_changed(subject=[1]), "cannot be read"),
        (_changed(subject=[{"digest": {"sha512": "x"}}]), "needs a SHA-256"),
        (_changed(subject=[{"digest": {"sha256": B}}]), "not the digest of its files"),
        (_changed(predicate=None), "no predicate"),
        (_changed(predicateType="https://cyclonedx.org/bom"), "neither a model signature"),
        (signing.model_statement({"m": A}, method="shards"), "parts of files"),
        (signing.model_statement({".": A, "m": A}), "names a file twice"),
        (signing.provenance([A], builder=""), "names no builder"),
    ],
)
def test_other_statements_are_refused(statement: Any, message: str) -> None:
    with pytest.raises(AttestationInvalid, match=message):
        statements.parse(statement)


def _bundle(**fields: Any) -> Any:
    whole = json.loads(signing.signed_blob(A, signing.new_key()))
    return {**whole, **fields}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"mediaType": 3},
        {"payload": "e30=", "payloadType": "x", "signatures": []},
        {"payload": "e30=", "payloadType": "x", "signatures": [{"sig": "e30="}] * 11},
        {"payload": "e30=", "payloadType": 1, "signatures": [{"sig": "e30="}]},
        {"payload": "***", "payloadType": "x", "signatures": [{"sig": "e30="}]},
        _bundle(verificationMaterial=None),
        _bundle(verificationMaterial={"certificate": {"rawBytes": ""}}),
        _bundle(verificationMaterial={"x509CertificateChain": {"certificates": [{}] * 11}}),
        _bundle(messageSignature={"messageDigest": {"algorithm": "SHA2_512", "digest": "e30="}}),
        _bundle(
            messageSignature={
                "messageDigest": {"algorithm": "SHA2_256", "digest": "e30="},
                "signature": "e30=",
            }
        ),
        {"mediaType": signing.BUNDLE, "verificationMaterial": {}},
    ],
)
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(AttestationInvalid):
        bundles.parse(document)
