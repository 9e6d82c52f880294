"""PostgreSQL keeps the plans of statements in a block, and makes them anew when a column changed its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import NotSupportedError

from portal.core.kept_plans import kept_plans
from tests.accounts import make_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps no plans"),
]


def _read(name: str) -> list[tuple[str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT username FROM accounts_user WHERE username = %s", [name])
        rows: list[tuple[str]] = cursor.fetchall()
        return rows


def _kept() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall()]


def test_a_statement_that_comes_again_is_planned_once_and_only_in_the_block() -> None:
    make_user(username="ann")
    connection.close()

    outside = [_read("ann") for _ in range(3)]
    before = _kept()
    with kept_plans():
        inside = [_read(name) for name in ("ann", "bob", "ann")]

    assert outside == [[("ann",)]] * 3
    assert inside == [[("ann",)], [], [("ann",)]]
    assert before == []
    assert _kept() == ["SELECT username FROM accounts_user WHERE username = $1"]


def test_nothing_is_kept_where_the_platform_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(connection.settings_dict, "KEEPS_PLANS", False)
    connection.close()

    with kept_plans():
        rows = [_read("ann") for _ in range(3)]

    assert rows == [[], [], []]
    assert _kept() == []
    connection.close()


@pytest.fixture
def migrate() -> Iterator[Callable[[], None]]:
    """A table that the call changes on another connection, as a migration does."""
    other: Any = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("CREATE TABLE changing (number integer)")
        cursor.execute("INSERT INTO changing VALUES (7)")
        yield lambda: cursor.execute("ALTER TABLE changing ALTER number TYPE text")
        cursor.execute("DROP TABLE changing")
    other.close()


def _number() -> object:
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM changing")
        row = cursor.fetchone()
    assert row is not None
    return row[0]


def test_a_changed_column_is_planned_anew(migrate: Callable[[], None]) -> None:
    with kept_plans():
        before = [_number() for _ in range(3)]
        migrate()
        after = [_number() for _ in range(3)]

    assert (before, after) == ([7, 7, 7], ["7", "7", "7"])


def test_a_transaction_that_meets_a_changed_column_fails_and_the_next_one_does_not(
    migrate: Callable[[], None],
) -> None:
    with kept_plans():
        assert [_number() for _ in range(3)] == [7, 7, 7]
        migrate()
        with pytest.raises(NotSupportedError), transaction.atomic():
            _number()
        with transaction.atomic():
            assert _number() == "7"
