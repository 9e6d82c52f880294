"""A signature is added, verified by a worker, required by a rule, and trusted no more when its signer is removed."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.attestations.domain.signers import SignerKind
from deployments.attestations.domain.verdicts import AttestationState
from deployments.attestations.services import attestations, trust, verification
from deployments.attestations.services.trust import SignerDraft, SigningRuleDraft
from deployments.changes.services import decisions
from deployments.models import Attestation, ModelVersion
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import leases
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.attestations import signing
from tests.deployments.attestations.attesting import (
    SHA,
    added,
    request,
    rule,
    signed,
    trusted,
    with_digests,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "with_digests", "world"]


def test_a_worker_finds_the_signer_of_exactly_these_bytes(world: World) -> None:
    key = signing.new_key()
    signer = trusted(world, key)

    good = added(world, signed(key))
    of_others = added(world, signed(signing.new_key()))
    of_other_bytes = added(world, signed(key, "2" * 64))
    provenance = added(world, signing.signed(signing.provenance([SHA]), key))

    assert (good.state, good.signer, good.reason) == ("trusted", signer, "")
    assert (of_others.state, of_others.signer) == ("untrusted", None)
    assert of_others.reason == "None of the trusted keys made this signature."
    assert (of_other_bytes.state, of_other_bytes.reason) == (
        "invalid",
        "It signs other bytes than those of detector.onnx.",
    )
    assert provenance.is_provenance
    assert provenance.facts == {
        "builder": signing.BUILDER,
        "build_type": "https://actions.github.io/buildtypes/workflow/v1",
        "source": signing.SOURCE,
        "commit": signing.COMMIT,
    }
    events = AuditEvent.objects.filter(action="attestation.verified").order_by("pk")
    assert [event.after["state"] for event in events] == [
        "trusted",
        "untrusted",
        "invalid",
        "trusted",
    ]
    assert verification_is_done()


def verification_is_done() -> bool:
    return leases.due(Attestation) == []


def test_it_waits_for_the_versions_own_digests(world: World) -> None:
    key = signing.new_key()
    trusted(world, key)
    ModelVersion.objects.filter(pk=world.version1.pk).update(state=VersionState.VERIFYING)

    row = added(world, signed(key))
    assert row.state == AttestationState.PENDING

    ModelVersion.objects.filter(pk=world.version1.pk).update(state=VersionState.READY)
    world.clock.move(6)
    verification.sweep()
    row.refresh_from_db()
    assert row.state == AttestationState.TRUSTED

    world.version2.files.update(sha256="")
    ModelVersion.objects.filter(pk=world.version2.pk).update(state=VersionState.QUARANTINED)
    unverified = added(world, signed(key, "2" * 64), world.version2)
    assert (unverified.state, unverified.reason) == (
        "invalid",
        "The bytes of detector:2 were never verified.",
    )


def test_a_worker_that_lost_its_lease_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = signing.new_key()
    trusted(world, key)
    row = attestations.add(
        actor=world.member, version_id=world.version1.pk, filename="a", body=signed(key)
    )
    examine = verification._examine

    def slowly(given: Attestation) -> Any:
        world.clock.move(61)
        return examine(given)

    monkeypatch.setattr(verification, "_examine", slowly)
    verification.advance(row.pk)

    row.refresh_from_db()
    assert row.state == AttestationState.PENDING
    assert leases.due(Attestation) == [row.pk]


def test_a_rule_refuses_unsigned_and_wrongly_signed_versions_before_the_request(
    world: World,
) -> None:
    key, other = signing.new_key(), signing.new_key()
    trusted(world, key)
    trusted(world, other, "research")
    rule(world, environments=("production",), signers=("ci",))

    with refused(world, Invalid) as unsigned:
        request(world)
    added(world, signed(other))
    with refused(world, Invalid):
        request(world)
    added(world, signed(key, "2" * 64))
    with refused(world, Invalid):
        request(world)
    assert "detector:1 has no signature of a signer that the rule accepts (rule “signed”)" in str(
        unsigned[0]
    )
    # The rule is one of production.
    assert request(world, name="try", environment="development").pk

    added(world, signed(key))
    assert request(world).pk


def test_a_rule_may_need_provenance_of_a_builder(world: World) -> None:
    key = signing.new_key()
    trusted(world, key)
    rule(world, needs_provenance=True, builders=("https://github.com/acme/*",))
    added(world, signed(key))

    with refused(world, Invalid) as without:
        request(world)
    added(world, signing.signed(signing.provenance([SHA], builder="https://evil/x"), key))
    with refused(world, Invalid) as of_another:
        request(world)
    added(world, signing.signed(signing.provenance([SHA]), key))

    assert "has no provenance of a signer" in str(without[0])
    assert "has provenance of the builder https://evil/x, which the rule does not accept" in str(
        of_another[0]
    )
    assert request(world).pk


def test_a_removed_signer_counts_no_more_at_once_and_what_waits_cannot_be_approved(
    world: World,
) -> None:
    key = signing.new_key()
    signer = trusted(world, key)
    rule(world, signers=("ci",))
    row = added(world, signed(key))
    change = request(world)

    trust.remove_signer(actor=world.admin, signer_id=signer.pk)

    # Before any worker looks again.
    row.refresh_from_db()
    assert row.state == AttestationState.TRUSTED
    with refused(world, DomainError):
        request(world, name="again")
    with pytest.raises(DomainError):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    change.refresh_from_db()
    assert change.state == "submitted"

    verification.sweep()
    row.refresh_from_db()
    assert (row.state, row.signer) == ("untrusted", None)

    # The same name again is another signer, which the rule does not name.
    trusted(world, key)
    verification.sweep()
    row.refresh_from_db()
    assert row.state == AttestationState.TRUSTED
    with refused(world, DomainError):
        request(world, name="again")


def test_a_signer_of_one_team_counts_there_only(world: World) -> None:
    key = signing.new_key()
    trusted(world, key, team="nlp")

    row = added(world, signed(key))

    assert row.state == AttestationState.UNTRUSTED
    with pytest.raises(Invalid, match="signers"):
        rule(world, signers=("ci",))
    assert rule(world, signers=("ci",), team="nlp").pk
    # It holds for the other team's versions only.
    assert request(world).pk


def test_the_certificate_must_be_valid_when_the_signature_is_added(world: World) -> None:
    authority, key = signing.authority(world.clock.at), signing.new_key()
    draft = SignerDraft(
        name="acme", pem=authority.pem, kind=SignerKind.CERTIFICATE, identity="ci@acme.example"
    )
    trust.add_signer(actor=world.admin, draft=draft)
    certificate = authority.issue(key, world.clock.at, days=1)
    statement = signing.model_statement({"detector.onnx": SHA})

    early = added(world, signing.signed(statement, key, [certificate]))
    world.clock.move(2 * 86_400)
    again = trusted(world, signing.new_key(), "other")
    verification.sweep()
    early.refresh_from_db()
    late = added(
        world,
        signing.signed({**statement, "subject": statement["subject"]}, key, [certificate]),
        world.version2,
    )

    assert again.pk
    assert (early.state, early.identity) == ("trusted", "ci@acme.example")
    assert late.state == AttestationState.UNTRUSTED


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "Invalid JSON"),
        ("[]", "must be a JSON object"),
        ('{"mediaType": "x"}', "neither a Sigstore bundle nor a DSSE envelope"),
        ("[" * 5000, "nested"),
        (
            '{"payload": "é", "payloadType": "x", "signatures": [{"sig": "AAAA"}]}',
            "payload is not base64",
        ),
        (" " * 2_000_001, "at most 2,000,000 bytes"),
    ],
)
def test_what_is_no_attestation_is_refused(world: World, body: str, message: str) -> None:
    with refused(world, Invalid) as refusal:
        added(world, body)

    assert message in str(refusal[0])
    assert not Attestation.objects.exists()


def test_people_and_bounds(world: World) -> None:
    key = signing.new_key()
    body = signed(key)
    row = added(world, body)
    version = world.version1.pk

    with refused(world, Conflict, "already_added"):
        added(world, body)
    with refused(world, Forbidden):
        attestations.add(actor=world.viewer, version_id=version, filename="a", body=body)
    with refused(world, NotFound):
        attestations.add(actor=world.stranger, version_id=version, filename="a", body=body)
    with refused(world, Invalid):
        attestations.add(actor=world.member, version_id=version, filename=" ", body=body)
    with refused(world, NotFound):
        attestations.remove(actor=world.member, version_id=world.version2.pk, attestation_id=row.pk)
    for call in (
        lambda: trust.add_signer(
            actor=world.lead, draft=SignerDraft(name="x", pem=signing.public_pem(key))
        ),
        lambda: trust.make_rule(actor=world.lead, draft=SigningRuleDraft(name="x")),
        lambda: trust.remove_signer(actor=world.lead, signer_id=1),
        lambda: trust.delete_rule(actor=world.lead, rule_id=1),
    ):
        with refused(world, Forbidden):
            call()

    for _ in range(19):
        added(world, signed(key))
    with refused(world, Conflict, "too_many_attestations"):
        added(world, signed(key))
    attestations.remove(actor=world.member, version_id=version, attestation_id=row.pk)
    assert Attestation.objects.count() == 19
