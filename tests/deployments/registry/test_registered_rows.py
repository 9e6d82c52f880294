"""The rows of a version by reference: all of them or none, whatever other requests write meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from deployments.models import Model, ModelVersion, VersionDocument
from deployments.registry.services import models, references
from deployments.registry.services.references import ReferenceDraft
from portal.accounts import tokens
from portal.accounts.scopes import Scope
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.accounts import make_membership, make_team
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db
COMMIT = "ab12" * 10
METADATA: dict[str, Any] = {
    "dataset_version": "2026-10",
    "metrics": {"mAP": 0.52, "latency_ms": 7},
    "labels": {"precision": "int8", "edge": "", "quote": "it's 50% \\ of {a,b}"},
}
README = "# Detects scratches\n\nOn *painted* parts, 100%."


def uri(name: str) -> str:
    return f"hf://org/{name}:{COMMIT}"


def register(
    people: People, name: str, *, role: str = "member", model: str = "chat", **draft: Any
) -> ModelVersion:
    return references.register(
        actor=people.named(role),
        team_slug="vision",
        model_name=model,
        draft=ReferenceDraft(uri(name), **draft),
    )


@pytest.mark.parametrize("model", ["chat", "new"], ids=["next version", "first version"])
def test_all_of_a_reference_is_stored(
    people: People, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    register(people, "first")
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)

    made = register(people, "second", model=model, metadata=METADATA, readme=README)

    version = ModelVersion.objects.get(pk=made.pk)
    assert (version.state, version.label) == ("ready", f"{model}:{2 if model == 'chat' else 1}")
    assert (version.source_uri, version.metadata) == (uri("second"), METADATA)
    assert (version.readme, version.created_by) == (README, people.member)
    assert version.created_at == version.ready_at == version.model.changed_at == at
    assert [check["name"] for check in version.checks] == ["Reference", "Pinned", "Bytes"]
    assert list(version.metric_rows.order_by("name").values_list("name", "value")) == [
        ("latency_ms", 7.0),
        ("map", 0.52),
    ]
    assert dict(version.label_rows.values_list("key", "value")) == METADATA["labels"]
    document = VersionDocument.objects.get(pk=version.pk)
    assert "precision=int8" in document.text
    if connection.vendor == "postgresql":
        assert "'scratch'" in str(document.vector)
    event = AuditEvent.objects.get(action="version.registered", object_id=str(version.pk))
    assert (event.object_label, event.team_slug) == (version.label, "vision")
    assert (event.actor_name, event.after["metadata"]) == ("member", METADATA)


def test_a_reference_without_metadata_has_a_text_and_no_facts(people: People) -> None:
    version = register(people, "first")

    assert version.metric_rows.count() == version.label_rows.count() == 0
    assert uri("first") in VersionDocument.objects.get(pk=version.pk).text


@pytest.mark.parametrize(
    ("role", "name", "draft", "error"),
    [
        ("viewer", "new", {}, Forbidden),
        ("viewer", "new", {"metadata": {"dtype": "x"}}, Forbidden),
        ("stranger", "new", {}, NotFound),
        ("member", "first", {}, Conflict),
        ("member", "new", {"metadata": {"dtype": "x"}}, Invalid),
    ],
)
def test_what_is_refused_of_a_model_that_exists_leaves_nothing(
    people: People, role: str, name: str, draft: dict[str, Any], error: type[DomainError]
) -> None:
    register(people, "first")
    before = (ModelVersion.objects.count(), AuditEvent.objects.count(), Model.objects.get())

    with pytest.raises(error):
        register(people, name, role=role, **draft)

    after = (ModelVersion.objects.count(), AuditEvent.objects.count(), Model.objects.get())
    assert after == before
    assert vars(after[2])["changed_at"] == vars(before[2])["changed_at"]


def test_a_token_of_another_team_finds_no_model(people: People) -> None:
    register(people, "first")
    make_membership(user=people.member, team=make_team(slug="other"), role="member")
    token = tokens.create(actor=people.member, name="ci", scopes=[Scope.UPLOAD], team_slug="other")
    actor = tokens.user_of(token.plain)
    assert actor is not None

    with pytest.raises(NotFound):
        references.register(
            actor=actor, team_slug="vision", model_name="chat", draft=ReferenceDraft(uri("new"))
        )

    assert ModelVersion.objects.count() == 1


def test_a_number_that_was_taken_meanwhile_is_followed_by_the_next(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(people, "first")
    real, taken = models.next_number, iter([1])
    monkeypatch.setattr(models, "next_number", lambda model: next(taken, None) or real(model))

    assert register(people, "second").number == 2
    assert AuditEvent.objects.filter(action="version.registered").count() == 2


def test_a_reference_that_another_request_registered_meanwhile_is_a_conflict(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(people, "first")
    real, others = references._refuse_duplicate, iter(["second"])

    def refuse_duplicate(*args: Any) -> None:
        real(*args)
        for name in others:
            register(people, name, role="lead")

    monkeypatch.setattr(references, "_refuse_duplicate", refuse_duplicate)

    with pytest.raises(Conflict) as refusal:
        register(people, "second")

    assert refusal.value.code == "same_reference"
    assert [v.number for v in ModelVersion.objects.order_by("number")] == [1, 2]
    assert AuditEvent.objects.filter(action="version.registered").count() == 2
