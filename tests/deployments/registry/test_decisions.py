"""Aliases, archive, release, metadata: who may, what is kept, what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from deployments import states
from deployments.models import ModelVersion
from deployments.registry.services import aliases, metadata, verification, versions
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db


def point(people: People, role: str, alias: str, number: int, **more: bool) -> None:
    aliases.move(
        actor=people.named(role),
        team_slug="vision",
        model_name="detector",
        alias=alias,
        number=number,
        **more,
    )


def test_champion_is_protected_before_it_exists(people: People, verified: Upload) -> None:
    first = verified(onnx_models.linear())
    count = AuditEvent.objects.count()

    for options in ({}, {"is_protected": False}, {"is_protected": True}):
        with pytest.raises(Forbidden):
            point(people, "member", "champion", 1, **options)
    assert (first.aliases.count(), AuditEvent.objects.count()) == (0, count)

    point(people, "lead", "champion", 1)
    assert first.aliases.get().is_protected


def test_a_protected_alias_is_moved_by_leads_only(people: People, verified: Upload) -> None:
    first = verified(onnx_models.linear())
    verified(onnx_models.linear(scale=2))
    point(people, "lead", "champion", 1, is_protected=True)
    point(people, "member", "staging", 1)
    count = AuditEvent.objects.count()

    with pytest.raises(Forbidden):
        point(people, "member", "champion", 2)
    with pytest.raises(Forbidden):
        point(people, "member", "staging", 2, is_protected=True)
    with pytest.raises(Forbidden):
        aliases.remove(
            actor=people.member, team_slug="vision", model_name="detector", alias="champion"
        )
    assert sorted(first.aliases.values_list("name", flat=True)) == ["champion", "staging"]
    assert AuditEvent.objects.count() == count

    point(people, "lead", "champion", 2)
    event = AuditEvent.objects.filter(action="alias.moved").order_by("id").last()
    assert event is not None
    assert (event.before, event.after) == (
        {"version": 1, "is_protected": True},
        {"version": 2, "is_protected": True},
    )


def test_an_alias_points_to_ready_versions_only(people: People, verified: Upload) -> None:
    verified(b"no model", filename="a.onnx")

    with pytest.raises(Conflict, match="is failed"):
        point(people, "member", "staging", 1)
    with pytest.raises(Invalid):
        point(people, "member", "staging", 7)
    with pytest.raises(Invalid):
        point(people, "member", "Staging!", 1)


def test_release_needs_an_admin_a_reason_and_ends(people: People, verified: Upload) -> None:
    version = verified(onnx_models.linear(domain="acme.ops"))

    with pytest.raises(Forbidden):
        versions.release(actor=people.lead, version_id=version.pk, reason="trust me", days=7)
    with pytest.raises(Invalid) as refusal:
        versions.release(actor=people.admin, version_id=version.pk, reason=" ", days=0)
    assert set(refusal.value.fields) == {"reason", "days"}

    versions.release(actor=people.admin, version_id=version.pk, reason="library is built", days=7)
    version.refresh_from_db()
    assert version.state == VersionState.READY

    with time_machine.travel(clock.now() + timedelta(days=8)):
        assert verification.due() == [version.pk]
        verification.advance(version.pk)
        version.refresh_from_db()
        assert version.state == VersionState.ARCHIVED
        with pytest.raises(Conflict, match="quarantined"):
            versions.restore(actor=people.lead, version_id=version.pk)


def test_archiving_is_no_way_out_of_quarantine(people: People, verified: Upload) -> None:
    version = verified(onnx_models.linear(domain="acme.ops"))
    versions.archive(actor=people.member, version_id=version.pk)

    with pytest.raises(Conflict, match="quarantined"):
        versions.restore(actor=people.admin, version_id=version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.ARCHIVED


def test_metadata_is_corrected_with_a_trace_and_bytes_stay(
    people: People, verified: Upload
) -> None:
    version = verified(onnx_models.linear(), metadata={"accuracy": 0.9})

    metadata.describe(
        actor=people.member,
        version_id=version.pk,
        metadata={"metrics": {"accuracy": "0.91"}, "labels": {"edge": ""}},
    )

    after = ModelVersion.objects.get()
    assert after.metadata == {"metrics": {"accuracy": 0.91}, "labels": {"edge": ""}}
    assert after.sha256 == version.sha256
    event = AuditEvent.objects.filter(action="version.described").get()
    assert event.before == {"metrics": {"accuracy": 0.9}}
    assert event.after == after.metadata


def test_every_illegal_transition_is_absent_from_the_table() -> None:
    """The legal transitions, listed: these and no others."""
    legal = {(a.value, b.value) for a, targets in states.VERSION.items() for b in targets}

    assert legal == {
        ("uploading", "verifying"),
        ("uploading", "failed"),
        ("verifying", "ready"),
        ("verifying", "quarantined"),
        ("verifying", "failed"),
        ("ready", "archived"),
        ("ready", "quarantined"),
        ("ready", "verifying"),
        ("quarantined", "ready"),
        ("quarantined", "verifying"),
        ("quarantined", "archived"),
        ("archived", "ready"),
    }
