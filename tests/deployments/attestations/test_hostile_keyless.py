"""A keyless bundle is a stranger's: each part that is wrong or borrowed gives a clear reason, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from django.test import Client

from deployments.attestations.services import attestations
from deployments.models import Attestation
from portal.core.errors import Invalid
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import SHA, added, with_digests
from tests.deployments.attestations.keyless import identity, model, rooted
from tests.deployments.attestations.sigstore_instance import Sigstore
from tests.deployments.attestations.transparency_log import Log
from tests.deployments.refusals import refused
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "with_digests", "world"]
AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
OURS, THEIRS = Sigstore(AT), Sigstore(AT)
GOOD = json.loads(OURS.blob(SHA, AT))
FOLDER = json.loads(OURS.statement(model(), AT))
STAMPED = json.loads(OURS.blob(SHA, AT, is_v2=True))
OTHER = json.loads(OURS.blob("2" * 64, AT))
# The same bytes, signed an hour later with another certificate.
LATER = json.loads(OURS.blob(SHA, AT + timedelta(hours=1)))
NOT_THEIRS = "Its log entry belongs to another signature."
NO_PROOF = "The proof and checkpoint do not show that its entry is in the log."


def material(document: Any) -> Any:
    return document["verificationMaterial"]


def entry(document: Any) -> Any:
    return material(document)["tlogEntries"][0]


def _entry_of(other: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        material(document)["tlogEntries"] = material(other)["tlogEntries"]

    return change


def _time_of(other: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for name in ("integratedTime", "inclusionPromise"):
            entry(document)[name] = entry(other)[name]

    return change


def _set(*path: str, to: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        part = entry(document)
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = to

    return change


def _drop(name: str) -> Callable[[Any], None]:
    return lambda document: entry(document).pop(name)


def _log_again(document: Any) -> None:
    """In a log that nobody vouches for."""
    body = json.loads(signing.from_b64(entry(document)["canonicalizedBody"]))
    material(document)["tlogEntries"] = [Log().add(body, AT + timedelta(minutes=1))]


def _claim_the_log(document: Any) -> None:
    """As before, but it says that it is the trusted one."""
    _log_again(document)
    entry(document)["logId"] = entry(GOOD)["logId"]


def _two_entries(document: Any) -> None:
    material(document)["tlogEntries"] *= 2


def _no_entries(document: Any) -> None:
    material(document)["tlogEntries"] = []


def _certificate_of(other: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        material(document)["certificate"] = material(other)["certificate"]

    return change


def _stamp_of_another_signature(document: Any) -> None:
    stamp = OURS.timestamp(b"another", AT)
    stamps = [{"signedTimestamp": signing.b64(stamp)}]
    material(document)["timestampVerificationData"]["rfc3161Timestamps"] = stamps


def _stamp_after_the_certificate(document: Any) -> None:
    signature = signing.from_b64(document["messageSignature"]["signature"])
    stamp = OURS.timestamp(signature, AT + timedelta(minutes=11))
    stamps = [{"signedTimestamp": signing.b64(stamp)}]
    material(document)["timestampVerificationData"]["rfc3161Timestamps"] = stamps


def _another_spelling(document: Any) -> None:
    """Another's entry under the name that a reader of Protobuf takes too."""
    material(document)["tlog_entries"] = material(document).pop("tlogEntries")


def _loop(document: Any) -> None:
    """A chain whose certificates issued each other."""
    rows = [{"rawBytes": signing.b64(c.public_bytes(Encoding.DER))} for c, _ in OURS.authority]
    chain = [material(document).pop("certificate"), *(rows * 4)]
    material(document)["x509CertificateChain"] = {"certificates": chain}
    document["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"


HOSTILE: dict[str, tuple[Any, Callable[[Any], object], str]] = {
    "no log entry": (
        GOOD,
        _no_entries,
        "It has no entry of a transparency log, so nothing proves when it was signed. Sign it again with the "
        "log on.",
    ),
    "two log entries": (GOOD, _two_entries, "It has several log entries; a bundle has one."),
    "the entry of another artifact": (GOOD, _entry_of(OTHER), NOT_THEIRS),
    "the entry of another folder": (
        FOLDER,
        _entry_of(json.loads(OURS.statement(model("2" * 64), AT))),
        NOT_THEIRS,
    ),
    "the entry of another signature of the same bytes": (
        GOOD,
        _entry_of(LATER),
        "The certificate was valid from 2026-11-25 12:00 to 12:10 UTC, and it was signed at 2026-11-25 13:01 "
        "UTC.",
    ),
    "the time of another entry": (
        LATER,
        _time_of(GOOD),
        "The certificate was valid from 2026-11-25 13:00 to 13:10 UTC, and it was signed at 2026-11-25 12:01 "
        "UTC.",
    ),
    "the time of another entry within the certificate": (
        GOOD,
        _time_of(OTHER),
        "The log did not sign the time of its entry.",
    ),
    "a time that the log did not sign": (
        GOOD,
        _set("integratedTime", to=str(int(AT.timestamp()) + 120)),
        "The log did not sign the time of its entry.",
    ),
    "no signed time": (
        GOOD,
        _drop("inclusionPromise"),
        "Neither its log entry nor a timestamp proves when it was signed.",
    ),
    "no proof": (
        GOOD,
        _drop("inclusionProof"),
        "Its log entry has no inclusion proof with a checkpoint.",
    ),
    "a proof of another tree": (
        GOOD,
        _set("inclusionProof", "hashes", to=entry(OTHER)["inclusionProof"]["hashes"]),
        NO_PROOF,
    ),
    "the checkpoint of another tree": (
        GOOD,
        _set("inclusionProof", "checkpoint", to=entry(OTHER)["inclusionProof"]["checkpoint"]),
        NO_PROOF,
    ),
    "a checkpoint of another log": (
        GOOD,
        _set("inclusionProof", "checkpoint", to={"envelope": THEIRS.log.checkpoint()}),
        "No transparency log of the trust root signed the checkpoint of its entry.",
    ),
    "an unknown log": (
        GOOD,
        _log_again,
        "Its log entry is of a log that the trust root did not have in use at 2026-11-25 12:01 UTC.",
    ),
    "a log that claims to be the trusted one": (
        GOOD,
        _claim_the_log,
        "No transparency log of the trust root signed the checkpoint of its entry.",
    ),
    "the certificate of another": (
        GOOD,
        _certificate_of(LATER),
        "The signature does not match the certificate in the bundle.",
    ),
    "a timestamp over another signature": (
        STAMPED,
        _stamp_of_another_signature,
        "None of its timestamps is one of the trust root's.",
    ),
    "a timestamp after the certificate": (
        STAMPED,
        _stamp_after_the_certificate,
        "The certificate was valid from 2026-11-25 12:00 to 12:10 UTC, and it was signed at 2026-11-25 12:11 "
        "UTC.",
    ),
    "names as Protobuf spells them": (
        GOOD,
        _another_spelling,
        "It has no entry of a transparency log, so nothing proves when it was signed. Sign it again with the "
        "log on.",
    ),
}


@pytest.fixture
def ready(world: World) -> World:
    rooted(world, OURS)
    identity(world)
    return world


def test_all_that_is_wrong_has_its_reason(ready: World) -> None:
    found = {}
    for name, (good, change, _) in HOSTILE.items():
        document = copy.deepcopy(good)
        change(document)
        row = added(ready, json.dumps(document))
        found[name] = (row.state, row.reason, row.signer)
        row.delete()

    invalid = {"the certificate of another"}
    assert found == {
        name: ("invalid" if name in invalid else "untrusted", reason, None)
        for name, (_, _, reason) in HOSTILE.items()
    }


def test_unchanged_they_are_good(ready: World) -> None:
    for document in (GOOD, FOLDER, STAMPED, LATER):
        row = added(ready, json.dumps(document))
        assert (row.state, row.reason) == ("trusted", "")


def test_intermediates_come_from_the_root_so_a_chain_that_loops_is_nothing(ready: World) -> None:
    document = copy.deepcopy(GOOD)
    _loop(document)

    row = added(ready, json.dumps(document))

    # The leaf is good by itself; what the bundle adds is not used.
    assert (row.state, row.reason) == ("trusted", "")


def test_certificates_of_others_and_without_a_log_count_nothing(ready: World) -> None:
    sigstore = Sigstore(AT, log=OURS.log, certificate_log=OURS.certificate_log)
    of_another_authority = added(ready, sigstore.blob(SHA, AT))
    forged = Sigstore(AT, log=OURS.log)
    forged.authority = OURS.authority
    unlogged = added(ready, forged.blob(SHA, AT))

    assert [(row.state, row.reason) for row in (of_another_authority, unlogged)] == [
        ("untrusted", "No authority of the trust root issued its certificate."),
        ("untrusted", "No certificate log of the trust root recorded its certificate."),
    ]


def test_two_signatures_in_one_envelope_are_none(ready: World) -> None:
    document = copy.deepcopy(FOLDER)
    thief = signing.envelope(model(), signing.new_key())
    document["dsseEnvelope"]["signatures"] += thief["signatures"]

    row = added(ready, json.dumps(document))

    assert (row.state, row.reason) == (
        "untrusted",
        "A keyless envelope has one signature, this one has 2.",
    )


def test_a_bundle_of_50_mb_is_refused_before_it_is_read(ready: World) -> None:
    large = json.dumps({**GOOD, "padding": "x" * 50_000_000})
    client = Client()
    client.force_login(ready.member)

    with refused(ready, Invalid) as refusal:
        attestations.add(
            actor=ready.member, version_id=ready.version1.pk, filename="large", body=large
        )
    answer = client.post(
        f"/api/v1/versions/{ready.version1.pk}/attestations",
        {"filename": "large", "body": large},
        content_type="application/json",
    )

    assert str(refusal[0]) == "An attestation has at most 2,000,000 bytes."
    assert answer.status_code in {400, 413, 422}
    assert not Attestation.objects.exists()
