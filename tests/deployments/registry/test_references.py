"""Versions by reference: registered in the registry and over HTTP, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from deployments.models import Model, ModelVersion
from deployments.registry.services import metadata, references, versions
from deployments.registry.services.references import ReferenceDraft
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db
COMMIT = "ab12" * 10
URI = f"hf://Qwen/Qwen3-8B:{COMMIT}"
STATED: dict[str, Any] = {
    "parameters_millions": "8,190",
    "dtype": "bfloat16",
    "context_length": 32768,
    "licence": "Apache-2.0",
    "accuracy": 0.8,
}


def registered(people: People, uri: str = URI, *, role: str = "member", **stated: Any) -> int:
    draft = ReferenceDraft(uri, metadata=stated)
    return references.register(
        actor=people.named(role), team_slug="vision", model_name="chat", draft=draft
    ).pk


def test_a_reference_is_a_ready_version_that_says_what_was_not_read(people: People) -> None:
    version = ModelVersion.objects.get(pk=registered(people, **STATED))

    assert (version.number, version.state, version.source_uri) == (1, "ready", URI)
    assert version.storage_uri == URI
    assert (version.bucket, version.upload_prefix, version.sha256) == ("", "", "")
    assert version.metadata == {
        "parameters_millions": 8190,
        "dtype": "bf16",
        "context_length": 32768,
        "licence": "Apache-2.0",
        "metrics": {"accuracy": 0.8},
    }
    assert [(check["name"], check["ok"]) for check in version.checks] == [
        ("Reference", True),
        ("Pinned", True),
        ("Bytes", None),
    ]
    assert "no SHA-256, no VersionId and no scan" in version.checks[2]["detail"]
    event = AuditEvent.objects.get(action="version.registered")
    assert (event.actor_name, event.after["source_uri"]) == ("member", URI)
    assert event.after["pin"] == COMMIT


def test_mutable_sources_are_reported(people: People) -> None:
    loose = ModelVersion.objects.get(pk=registered(people, "hf://Qwen/Qwen3-8B:main"))
    claim = ModelVersion.objects.get(pk=registered(people, "pvc://weights/chat/2"))

    assert [v.checks[1]["ok"] for v in (loose, claim)] == [False, False]
    assert "add the commit" in loose.checks[1]["detail"]
    assert "a separate path" in claim.checks[1]["detail"]
    assert (loose.number, claim.number) == (1, 2)


@pytest.mark.parametrize(
    ("role", "uri", "stated", "error", "field"),
    [
        ("viewer", URI, {}, Forbidden, ""),
        ("stranger", URI, {}, NotFound, ""),
        ("member", "s3://bucket/model", {}, Invalid, "source_uri"),
        ("member", "hf://user:pass@org/model", {}, Invalid, "source_uri"),
        ("member", URI, {"dtype": "mixed"}, Invalid, "metadata.dtype"),
        ("member", URI, {"parameters_millions": "8B"}, Invalid, "metadata.parameters_millions"),
        ("member", URI, {"parameters_millions": 0}, Invalid, "metadata.parameters_millions"),
        ("member", URI, {"context_length": True}, Invalid, "metadata.context_length"),
    ],
)
def test_a_refused_reference_leaves_nothing(
    people: People,
    role: str,
    uri: str,
    stated: dict[str, object],
    error: type[DomainError],
    field: str,
) -> None:
    with pytest.raises(error) as refusal:
        registered(people, uri, role=role, **stated)

    assert not field or list(refusal.value.fields) == [field]
    assert (Model.objects.count(), ModelVersion.objects.count()) == (0, 0)
    assert not AuditEvent.objects.filter(action__startswith="version").exists()


def test_all_problems_are_reported_at_once(people: People) -> None:
    with pytest.raises(Invalid) as refusal:
        references.register(
            actor=people.member,
            team_slug="vision",
            model_name="Chat Model",
            draft=ReferenceDraft("nothing", metadata={"dtype": "x"}),
        )

    assert set(refusal.value.fields) == {"model", "source_uri", "metadata.dtype"}


def test_the_same_reference_is_one_version_of_a_model(people: People) -> None:
    registered(people)

    with pytest.raises(Conflict) as refusal:
        registered(people)

    assert refusal.value.code == "same_reference"
    assert ModelVersion.objects.count() == 1


def test_it_is_archived_restored_and_described_as_any_other(people: People) -> None:
    pk = registered(people)

    versions.archive(actor=people.member, version_id=pk, reason="superseded")
    assert ModelVersion.objects.get(pk=pk).state == "archived"
    versions.restore(actor=people.member, version_id=pk)
    metadata.describe(actor=people.member, version_id=pk, metadata={"dtype": "float16"})
    with pytest.raises(Invalid):
        metadata.describe(actor=people.member, version_id=pk, metadata={"dtype": "mixed"})

    version = ModelVersion.objects.get(pk=pk)
    assert (version.state, version.source_uri) == ("ready", URI)
    assert version.metadata == {"dtype": "fp16"}


def test_the_api_registers_and_returns_what_is_pinned(people: People, client: Client) -> None:
    client.force_login(people.member)
    at = "/api/v1/models/vision/chat/references"

    made = client.post(at, {"source_uri": URI, "metadata": STATED}, content_type="application/json")
    again = client.post(at, {"source_uri": URI}, content_type="application/json")
    secret = client.post(
        at, {"source_uri": "hf://u:hunter2@org/model"}, content_type="application/json"
    )

    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["state"], body["source_uri"], body["storage_uri"]) == ("ready", URI, URI)
    assert (body["is_pinned"], body["sha256"], body["size_bytes"]) == (True, "", None)
    assert body["metadata"]["parameters_millions"] == 8190
    assert (again.status_code, again.json()["code"]) == (409, "same_reference")
    assert secret.status_code == 422
    assert "hunter2" not in secret.content.decode()
