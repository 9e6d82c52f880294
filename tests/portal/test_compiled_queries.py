"""Compiled queries find what the ORM finds, with the values and the roles of the moment."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DEFAULT_DB_ALIAS, DataError, connection, connections
from django.db.models import BigIntegerField, CharField, DateTimeField, Value
from django.db.models.functions import Concat
from django.test.utils import CaptureQueriesContext

from deployments.models import Model, ModelVersion
from deployments.registry.selectors import versions
from portal.accounts import tokens
from portal.accounts.models import ApiToken, User
from portal.core import clock
from portal.core.compiled_queries import CompiledQuery, IsAmong, Parameter
from portal.core.errors import NotFound
from tests.accounts import make_membership, make_user

pytestmark = pytest.mark.django_db
BY_NAME = CompiledQuery(lambda: User.objects.filter(username=Parameter("name", CharField())))
BY_ID = CompiledQuery(lambda: User.objects.filter(pk=Parameter("key", BigIntegerField())))
OLD = CompiledQuery(
    lambda: (
        ApiToken.objects.select_related("user")
        .filter(created_at__lt=Parameter("at", DateTimeField()), revoked_at=None)
        .order_by("name")
    )
)


AMONG = CompiledQuery(
    lambda: User.objects.filter(IsAmong("pk", "keys")).order_by("username").values_list("username")
)
JOINED = CompiledQuery(
    lambda: User.objects.annotate(twice=Concat("username", "username"), one=Value(1)).filter(
        username=Parameter("name", CharField())
    )
)


def test_one_statement_finds_any_number_of_keys() -> None:
    ann, bob = make_user(username="ann"), make_user(username="bob")
    make_user(username="eve")

    for keys, names in (
        ([], []),
        ([bob.pk], ["bob"]),
        ([bob.pk, ann.pk, 2**62, -1, ann.pk], ["ann", "bob"]),
        ((ann.pk,), ["ann"]),
    ):
        assert [name for (name,) in AMONG.rows(keys=keys)] == names


def test_annotations_are_attributes_of_the_objects() -> None:
    make_user(username="ann")

    row = JOINED.first(name="ann")

    assert row is not None
    assert (row.username, vars(row)["twice"], vars(row)["one"]) == ("ann", "annann", 1)


def test_each_run_has_its_own_values() -> None:
    ann, bob = make_user(username="ann"), make_user(username="bob")

    assert [BY_NAME.first(name=name) for name in ("ann", "bob", "' OR 1=1 --", "%s", "ann")] == [
        ann,
        bob,
        None,
        None,
        ann,
    ]


def test_objects_are_those_of_the_orm_with_related_ones_in_one_query() -> None:
    user = make_user(username="ann")
    for name in ("b", "a"):
        tokens.create(actor=user, name=name, days=1)
    later = clock.now() + timedelta(hours=1)

    with CaptureQueriesContext(connection) as captured:
        rows = OLD.objects(at=later)
        names = [(row.name, row.user.username) for row in rows]

    assert names == [("a", "ann"), ("b", "ann")]
    assert len(captured) == 1
    for row in rows:
        same = ApiToken.objects.get(pk=row.pk)
        assert {**vars(row), "_state": 0} == {**vars(same), "_state": 0}
        assert {**vars(row.user), "_state": 0} == {**vars(same.user), "_state": 0}
    assert OLD.objects(at=later - timedelta(days=1)) == []


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, 10**40, -1, 0])
def test_an_integer_that_the_column_cannot_hold_equals_none(key: int) -> None:
    make_user()

    assert BY_ID.first(key=key) is None


def test_a_read_object_can_be_changed_and_saved() -> None:
    make_user(username="ann")
    user = BY_NAME.first(name="ann")
    assert user is not None

    user.theme = "dark"
    user.save()

    assert User.objects.get(username="ann").theme == "dark"


def test_a_role_that_was_taken_counts_at_once() -> None:
    membership, at = make_membership(), clock.now()
    member, team = membership.user, membership.team
    model = Model.objects.create(
        team=team, name="m", created_by=member, created_at=at, changed_at=at
    )
    version = ModelVersion.objects.create(
        model=model,
        number=3,
        state="ready",
        metadata={"metrics": {"map": 0.5}},
        declared_size_bytes=0,
        created_by=member,
        created_at=at,
    )
    admin = make_user(username="boss", is_platform_admin=True)

    def read(actor: User) -> ModelVersion:
        return versions.get_version_by_number(actor=actor, team_slug=team.slug, name="m", number=3)

    assert read(member).metadata == read(admin).metadata == version.metadata
    membership.delete()
    with pytest.raises(NotFound):
        read(member)
    with pytest.raises(NotFound):
        versions.get_version(actor=member, version_id=version.pk)
    with pytest.raises(NotFound):
        versions.get_model(actor=member, team_slug=team.slug, name="m")
    assert read(admin) == version


def test_what_a_connection_keeps_of_a_query_ends_with_the_query() -> None:
    query = CompiledQuery(lambda: User.objects.filter(username=Parameter("name", CharField())))
    assert query.first(name="ann") is None
    kept = vars(connections[DEFAULT_DB_ALIAS])["slipway_compiled_queries"]
    before = len(kept)

    del query
    gc.collect()

    assert len(kept) == before - 1


def test_a_query_whose_plan_depends_on_values_is_planned_with_them() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite keeps no plans")
    query = CompiledQuery(
        lambda: User.objects.filter(email=Parameter("mail", CharField())), keeps_plan=False
    )

    for mail in ("a", "b", "a"):
        assert query.objects(mail=mail) == []

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%email%% ='"
        )
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize(
    "text", ["2026-01-01 00:00:00+00", "0005-02-03 04:05:06.5+00", "9999-12-31 23:59:59.999999+00"]
)
def test_times_of_the_database_are_in_utc(text: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("of the backend for PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        (at,) = cursor.fetchone() or (None,)

    assert at == datetime.fromisoformat(text)
    assert at.tzinfo is UTC


@pytest.mark.parametrize("text", ["infinity", "10000-01-01", "0005-01-01 BC"])
def test_a_time_that_python_cannot_hold_is_an_error(text: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("of the backend for PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError, match="timestamp too"):
            cursor.fetchone()
