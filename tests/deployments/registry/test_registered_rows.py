"""A reference to a model that exists is written by one statement of PostgreSQL, as row by row elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.models import Model, ModelVersion, VersionDocument
from deployments.registry.services import references
from deployments.registry.services.references import ReferenceDraft
from portal.accounts import tokens
from portal.accounts.scopes import Scope
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from portal.core.statements import one_statement
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


def rows_of(version: ModelVersion) -> list[dict[str, Any]]:
    """All that is stored of it, without what differs between two models."""
    row = ModelVersion.objects.get(pk=version.pk)
    event = AuditEvent.objects.get(action="version.registered", object_id=str(version.pk))
    facts: list[Any] = [
        *version.metric_rows.order_by("name").values("name", "value"),
        *version.label_rows.order_by("key").values("key", "value"),
    ]
    document: Any = VersionDocument.objects.filter(pk=version.pk).values("text", "vector").get()
    stored = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    audited = {
        field.attname: getattr(event, field.attname) for field in event._meta.concrete_fields
    }
    for name in ("id", "model_id", "at", "object_id", "object_label"):
        stored.pop(name, None)
        audited.pop(name, None)
    assert event.object_label == f"{version.model.name}:{version.number}"
    return [stored, audited, document, *facts]


@pytest.mark.parametrize("keeps_plans", [True, False])
@pytest.mark.parametrize(
    "draft",
    [{"metadata": METADATA, "readme": README}, {"metadata": {"parameters_millions": 7}}, {}],
    ids=["all", "size", "nothing"],
)
def test_both_ways_store_the_same(
    people: People,
    monkeypatch: pytest.MonkeyPatch,
    draft: dict[str, Any],
    keeps_plans: bool,
) -> None:
    monkeypatch.setitem(connection.settings_dict, "KEEPS_PLANS", keeps_plans)
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)
    for model in ("chat", "talk"):
        register(people, "first", model=model)

    at_once = register(people, "second", model="chat", **draft)
    monkeypatch.setattr(one_statement, "is_supported", lambda: False)
    row_by_row = register(people, "second", model="talk", **draft)

    assert rows_of(at_once) == rows_of(row_by_row)
    assert (at_once.number, row_by_row.number) == (2, 2)
    assert Model.objects.get(name="chat").changed_at == at
    assert [at_once.state, at_once.label, at_once.team.slug] == ["ready", "chat:2", "vision"]
    assert ModelVersion.objects.get(pk=at_once.pk) == at_once
    at_once.save()
    assert ModelVersion.objects.filter(model__name="chat").count() == 2


def test_a_request_of_a_token_is_four_statements(people: People) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite writes row by row")
    register(people, "first")
    token = tokens.create(actor=people.member, name="ci", scopes=[Scope.UPLOAD])
    client = Client(headers={"authorization": f"Bearer {token.plain}"})
    at = "/api/v1/models/vision/chat/references"
    body = {"source_uri": uri("second"), "metadata": METADATA}
    assert client.post(at, body, content_type="application/json").status_code == 201

    with CaptureQueriesContext(connection) as captured:
        made = client.post(
            at, {**body, "source_uri": uri("third")}, content_type="application/json"
        )

    assert made.status_code == 201
    assert (made.json()["number"], made.json()["aliases"]) == (3, [])
    # The token, what decides, the role, and the rows; a test is a transaction, in which the last has a savepoint.
    statements = [row["sql"] or "" for row in captured]
    assert len([sql for sql in statements if "SAVEPOINT" not in sql]) == 4


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
    if connection.vendor != "postgresql":
        pytest.skip("SQLite writes row by row")
    first = register(people, "first")
    write = one_statement.run
    numbers = iter([2])

    def run(parts: Any) -> None:
        for number in numbers:
            ModelVersion.objects.create(
                model=first.model,
                number=number,
                state="failed",
                declared_size_bytes=0,
                created_by=people.member,
                created_at=clock.now(),
            )
        write(parts)

    monkeypatch.setattr(one_statement, "run", run)

    assert register(people, "second").number == 3
    assert AuditEvent.objects.filter(action="version.registered").count() == 2


def test_a_reference_that_another_request_registered_meanwhile_is_a_conflict(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite writes row by row")
    register(people, "first")
    write, others = one_statement.run, iter(["second"])

    def run(parts: Any) -> None:
        for name in others:
            monkeypatch.setattr(one_statement, "run", write)
            register(people, name, role="lead")
        write(parts)

    monkeypatch.setattr(one_statement, "run", run)

    with pytest.raises(Conflict) as refusal:
        register(people, "second")

    assert refusal.value.code == "same_reference"
    assert [v.number for v in ModelVersion.objects.order_by("number")] == [1, 2]
    assert AuditEvent.objects.filter(action="version.registered").count() == 2
