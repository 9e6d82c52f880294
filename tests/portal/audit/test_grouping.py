"""Events of one person about one object within a minute are one group; none is lost or invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.audit.changes import ChangedValue, list_changed_values
from portal.audit.grouping import LONGEST, AuditFact, group_facts

START: Final = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)

_ROWS = st.lists(
    st.tuples(st.integers(0, 300), st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40
)


def facts_of(*rows: tuple[int, str, str]) -> list[AuditFact]:
    """Events written from the oldest on, as the trail has them: newest first."""
    facts = [
        AuditFact(number, START + timedelta(seconds=second), actor, subject)
        for number, (second, actor, subject) in enumerate(rows, start=1)
    ]
    return facts[::-1]


def ids_of(groups: list[tuple[AuditFact, ...]]) -> list[list[int]]:
    return [[fact.event_id for fact in group] for group in groups]


def test_what_one_did_about_an_object_within_a_minute_is_one_group() -> None:
    facts = facts_of(
        (0, "lead", "deployment:1"),
        (10, "slipway", "deployment:1"),
        (20, "lead", "deployment:1"),
        (30, "lead", "deployment:2"),
        (60, "lead", "deployment:1"),
        (61, "lead", "deployment:1"),
    )

    assert ids_of(group_facts(facts)) == [[6, 5, 3], [4], [2], [1]]


@given(_ROWS)
def test_no_event_is_lost_or_invented_and_the_order_is_kept(
    rows: list[tuple[int, str, str]],
) -> None:
    facts = facts_of(*sorted(rows, key=lambda row: row[0]))

    groups = group_facts(facts)

    assert sorted(fact.event_id for group in groups for fact in group) == list(
        range(1, len(rows) + 1)
    )
    newest = [group[0].event_id for group in groups]
    assert newest == sorted(newest, reverse=True)
    for group in groups:
        assert [fact.event_id for fact in group] == sorted(
            (fact.event_id for fact in group), reverse=True
        )
        assert len({(fact.actor, fact.subject) for fact in group}) == 1
        assert group[0].at - group[-1].at <= LONGEST


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ({"weight": 10}, {"weight": 25}, ChangedValue("weight", "10", "25", is_simple=True)),
        ({}, {"is_open": True}, ChangedValue("is open", None, "yes", is_simple=True)),
        ({"name": "x"}, {}, ChangedValue("name", "x", None, is_simple=True)),
        ({"note": ""}, {"note": "y"}, ChangedValue("note", "empty", "y", is_simple=True)),
        (
            {"teams": ["a"]},
            {"teams": ["a", "b"]},
            ChangedValue("teams", "a", "a, b", is_simple=True),
        ),
        (
            {},
            {"steps": [{"weight": 10, "soak_seconds": None}]},
            ChangedValue("steps", None, "weight 10; soak seconds none", is_simple=False),
        ),
        (
            {"expires_at": "2027-02-27T23:33:13.9401-01:00"},
            {"expires_at": "2027-13-27T15:33:13+00:00"},
            ChangedValue(
                "expires at", "28 Feb 2027 00:33", "2027-13-27T15:33:13+00:00", is_simple=True
            ),
        ),
        ({"text": "a"}, {"text": "b" * 81}, ChangedValue("text", "a", "b" * 81, is_simple=False)),
    ],
)
def test_a_changed_value_is_in_words(
    before: dict[str, Any], after: dict[str, Any], shown: ChangedValue
) -> None:
    assert list_changed_values(before, after) == [shown]


def test_what_stayed_the_same_is_not_listed() -> None:
    assert list_changed_values({"a": 1, "b": 2}, {"a": 1, "b": 3}) == [
        ChangedValue("b", "2", "3", is_simple=True)
    ]
