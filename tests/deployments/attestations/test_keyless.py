"""A keyless signature counts by its identity under a trust root, and by nothing less."""

from __future__ import annotations

import json
import socket
from datetime import timedelta
from typing import Any

import pytest

from deployments.attestations.services import roots, trust, verification
from deployments.models import Attestation
from portal.audit.models import AuditEvent
from portal.core.errors import Invalid
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import (
    SHA,
    added,
    request,
    rule,
    trusted,
    with_digests,
)
from tests.deployments.attestations.keyless import identity, instance, model, rooted
from tests.deployments.attestations.sigstore_instance import ISSUER, WORKFLOW, Sigstore
from tests.deployments.refusals import refused
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "with_digests", "world"]


@pytest.mark.parametrize("is_v2", [False, True], ids=["Rekor v1", "Rekor v2 and timestamps"])
def test_bundles_of_cosign_and_model_signing_count_by_their_identity(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    is_v2: bool,
) -> None:
    sigstore = instance(world)
    rooted(world, sigstore)
    signer = identity(world)
    # Signed days before it is added: the certificate ended long ago.
    at = sigstore.at - timedelta(days=3)
    asked: list[Any] = []

    def resolve(*given: Any, **_: Any) -> list[Any]:
        asked.append(given)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    rows = [
        added(world, sigstore.blob(SHA, at, is_v2=is_v2)),
        added(world, sigstore.statement(model(), at, is_v2=is_v2)),
        added(world, sigstore.statement(signing.provenance([SHA]), at, is_v2=is_v2)),
    ]

    assert [(row.state, row.reason, row.signer) for row in rows] == [("trusted", "", signer)] * 3
    assert [row.is_provenance for row in rows] == [False, False, True]
    assert [(row.identity, row.issuer) for row in rows] == [(WORKFLOW, ISSUER)] * 3
    assert [row.signed_at for row in rows] == [at + timedelta(minutes=1)] * 3
    # Three entries were in the log before.
    assert [row.log_index for row in rows] == [3, 4, 5]
    assert asked == []


def test_a_rule_takes_its_signature_and_only_as_long_as_it_is_trusted(world: World) -> None:
    sigstore = instance(world)
    root = rooted(world, sigstore)
    first, second = identity(world), identity(world, "people", identity="ci@acme.example")
    rule(world, signers=("workflow", "people"))

    with refused(world, Invalid) as unsigned:
        request(world)
    assert "has no signature of a signer that the rule accepts" in str(unsigned[0])
    added(world, sigstore.blob(SHA, sigstore.at))
    request(world, name="by-workflow")
    trust.remove_signer(actor=world.admin, signer_id=first.pk)
    with refused(world, Invalid):
        request(world)

    row = added(world, sigstore.blob(SHA, sigstore.at, subject="ci@acme.example"))
    assert row.signer == second
    request(world, name="by-people")
    roots.remove(actor=world.admin, root_id=root.pk)
    with refused(world, Invalid):
        request(world)
    verification.sweep()
    row.refresh_from_db()
    assert (row.state, row.reason) == (
        "untrusted",
        "It is keyless, and no identity is trusted for keyless signatures.",
    )
    actions = AuditEvent.objects.filter(action__startswith="trust").order_by("pk")
    assert [event.action for event in actions] == [
        "trust_root.added",
        "trusted_signer.added",
        "trusted_signer.added",
        "trusted_signer.removed",
        "trusted_signer.removed",
        "trust_root.removed",
    ]


@pytest.mark.parametrize(
    ("subject", "issuer"),
    [
        (WORKFLOW, "https://gitlab.example"),
        (WORKFLOW, ISSUER + "/"),
        (WORKFLOW + "-evil", ISSUER),
        (WORKFLOW[:-1], ISSUER),
        (WORKFLOW.upper(), ISSUER),
        ("ci@acme.example", ISSUER),
    ],
)
def test_another_identity_of_the_same_root_does_not(
    world: World, subject: str, issuer: str
) -> None:
    sigstore = instance(world)
    rooted(world, sigstore)
    identity(world)

    row = added(world, sigstore.blob(SHA, sigstore.at, subject=subject, issuer=issuer))

    assert (row.state, row.signer) == ("untrusted", None)
    assert row.reason == "Its signature is proved, but its identity is not trusted under acme."
    assert (row.identity, row.issuer) == (subject, issuer)


def test_it_must_be_about_the_files_of_its_version(world: World) -> None:
    sigstore = instance(world)
    rooted(world, sigstore)
    identity(world)

    blob = added(world, sigstore.blob("2" * 64, sigstore.at))
    folder = added(world, sigstore.statement(model("2" * 64), sigstore.at))
    other = added(world, sigstore.statement(model(), sigstore.at, payload_type="text/plain"))
    right = added(world, sigstore.blob("2" * 64, sigstore.at), world.version2)

    assert [(row.state, row.reason) for row in (blob, folder, other)] == [
        ("invalid", "It does not name the bytes of detector.onnx."),
        ("invalid", "It signs other bytes than those of detector.onnx."),
        ("invalid", f"The payload type must be {signing.IN_TOTO}."),
    ]
    assert right.state == "trusted"


def test_one_good_signature_among_bad_ones_is_enough(world: World) -> None:
    sigstore, stranger = instance(world), instance(world)
    rooted(world, sigstore)
    identity(world)
    rule(world)

    bad = added(world, stranger.blob(SHA, sigstore.at))
    with refused(world, Invalid):
        request(world)
    good = added(world, sigstore.blob(SHA, sigstore.at))

    assert (bad.state, good.state) == ("untrusted", "trusted")
    assert request(world).pk


def test_a_rotated_root_is_replaced_and_what_it_no_longer_vouches_for_counts_no_more(
    world: World,
) -> None:
    old, new = instance(world), instance(world)
    root = rooted(world, old)
    signer = identity(world)
    kept, lost = (added(world, old.blob(SHA, old.at - timedelta(days=d))) for d in (3, 1))
    later = added(world, new.blob(SHA, new.at))
    assert [row.state for row in (kept, lost, later)] == ["trusted", "trusted", "untrusted"]

    # The old log was retired two days ago.
    document = merged(Sigstore.trusted_root(new), old, until=old.at - timedelta(days=2))
    roots.replace(actor=world.admin, root_id=root.pk, document=json.dumps(document))

    def states() -> list[str]:
        return list(Attestation.objects.order_by("pk").values_list("state", flat=True))

    assert states() == ["pending", "pending", "untrusted"]
    verification.sweep()
    assert states() == ["trusted", "untrusted", "trusted"]
    for row in (kept, lost, later):
        row.refresh_from_db()
    assert lost.reason == (
        "Its log entry is of a log that the trust root did not have in use at "
        f"{old.at - timedelta(days=1) + timedelta(minutes=1):%Y-%m-%d %H:%M} UTC."
    )
    assert (kept.signer, later.signer) == (signer, signer)
    event = AuditEvent.objects.get(action="trust_root.replaced")
    assert event.before["sha256"] != event.after["sha256"]


def merged(document: dict[str, Any], old: Sigstore, *, until: Any) -> dict[str, Any]:
    old.until = until
    for part, rows in old.trusted_root().items():
        if part != "mediaType":
            document[part] = [*rows, *document[part]]
    return document


def test_each_identity_is_bound_to_its_root(world: World) -> None:
    """The same issuer and subject under another instance is another identity."""
    ours, theirs = instance(world), instance(world)
    rooted(world, ours)
    rooted(world, theirs, "theirs")
    identity(world)
    identity(world, "people of theirs", trust_root="theirs", identity="ci@acme.example")

    row = added(world, theirs.blob(SHA, theirs.at))

    # That it is no signature under acme says nothing more.
    assert (row.state, row.reason) == (
        "untrusted",
        "Its signature is proved, but its identity is not trusted under theirs.",
    )
    assert (row.identity, row.signed_at) == (WORKFLOW, theirs.at + timedelta(minutes=1))


def test_of_several_roots_each_says_why_not(world: World) -> None:
    rooted(world, instance(world))
    rooted(world, instance(world), "theirs")
    identity(world)
    identity(world, "people of theirs", trust_root="theirs", identity="ci@acme.example")
    stranger = instance(world)

    row = added(world, stranger.blob(SHA, stranger.at))

    at = f"{stranger.at + timedelta(minutes=1):%Y-%m-%d %H:%M} UTC."
    reason = f"Its log entry is of a log that the trust root did not have in use at {at}"
    assert row.reason == f"acme: {reason} theirs: {reason}"


def test_keys_and_identities_stand_side_by_side(world: World) -> None:
    sigstore, key = instance(world), signing.new_key()
    rooted(world, sigstore)
    by_key, by_identity = trusted(world, key), identity(world)

    rows = [
        added(world, signing.signed(model(), key)),
        added(world, sigstore.statement(model(), sigstore.at)),
    ]

    assert [row.signer for row in rows] == [by_key, by_identity]
    assert (rows[0].issuer, rows[0].signed_at, rows[0].log_index) == ("", None, None)
