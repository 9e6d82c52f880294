"""Limits of many callers in few rules, whichever of them are paused."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.manifests.domain.access import limit_rules
from deployments.manifests.domain.access.limit_rules import MOST_RULES, ClientLimit

_HEADER = "slipway-caller"
_VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)
_LIMITS = st.one_of(st.none(), st.sampled_from([1, 2, 60, 61, 600, 1_000_000]))


def keys_of(count: int, first: int = 1) -> list[str]:
    return [f"caller-{number % 7}.{number}" for number in range(first, first + count)]


def limit_of(rules: Any, client: str) -> list[dict[str, Any]]:
    """The limits that hold for a client, as Envoy Gateway reads the rules: all headers of a rule match."""
    found = []
    for rule in rules:
        headers = [header for one in rule["clientSelectors"] for header in one["headers"]]
        assert {header["name"] for header in headers} == {_HEADER}
        if all(_matches(header, client) for header in headers):
            found.append(rule["limit"])
    return found


def _matches(header: dict[str, str], client: str) -> bool:
    if header["type"] == "Distinct":
        assert "value" not in header
        return True
    assert len(header["value"]) <= 1024
    if header["type"] == "Exact":
        return header["value"] == client
    return re.fullmatch(header["value"], client) is not None


def test_up_to_the_bound_each_caller_has_a_rule_and_one_more_shares() -> None:
    at_bound = {name: ClientLimit(60) for name in keys_of(MOST_RULES)}
    above = {name: ClientLimit(60) for name in keys_of(MOST_RULES + 1)}

    own = limit_rules.rules_of(at_bound, header=_HEADER, are_numbered=True)
    shared = limit_rules.rules_of(above, header=_HEADER, are_numbered=True)

    assert (len(own.rules), len(shared.rules)) == (MOST_RULES, 1)
    assert (own.left_out, shared.left_out) == ((), [])
    for rules, clients in ((own.rules, at_bound), (shared.rules, above)):
        for client in clients:
            assert limit_of(rules, client) == [{"requests": 60, "unit": "Minute"}]


def test_without_room_for_all_the_highest_limits_are_left_out() -> None:
    limits = {name: ClientLimit(number) for number, name in enumerate(keys_of(20), start=100)}
    limits["paused.99"] = ClientLimit(is_paused=True)

    planned = limit_rules.rules_of(limits, header=_HEADER, are_numbered=True)

    assert len(planned.rules) == MOST_RULES
    assert limit_of(planned.rules, "paused.99") == [{"requests": 1, "unit": "Day"}]
    assert planned.left_out == sorted(f"caller-{n % 7}.{n}" for n in range(16, 21))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_VALUES, _LIMITS, max_size=60), st.data())
def test_claims_of_any_text_are_limited_as_stated_and_nobody_else_is(
    limited: dict[str, int | None], data: st.DataObject
) -> None:
    limits = {name: ClientLimit(limit) for name, limit in limited.items()}

    planned = limit_rules.rules_of(limits, header=_HEADER, are_numbered=False)

    assert len(planned.rules) <= MOST_RULES
    for client, limit in limits.items():
        expected = [] if client in planned.left_out else [limit.as_limit]
        assert limit_of(planned.rules, client) == expected
    stranger = data.draw(_VALUES.filter(lambda value: value not in limits))
    assert limit_of(planned.rules, stranger) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_LIMITS, st.booleans(), st.booleans()), max_size=500),
    st.integers(1, 10**9),
)
def test_what_fits_with_all_paused_fits_with_any_of_them_paused(
    callers: list[tuple[int | None, bool, bool]], first: int
) -> None:
    """The gateway pauses keys by itself, so room is reserved when the limit is set."""
    rows = dict(zip(keys_of(len(callers), first), callers, strict=True))
    pausable = [name for name, (_, may_pause, _) in rows.items() if may_pause]
    needed = limit_rules.rules_needed(
        {name: limit for name, (limit, _, _) in rows.items()}, pausable, are_numbered=True
    )
    limits = {
        name: ClientLimit(limit, is_paused=may_pause and is_paused)
        for name, (limit, may_pause, is_paused) in rows.items()
        if limit is not None or (may_pause and is_paused)
    }

    planned = limit_rules.rules_of(limits, header=_HEADER, are_numbered=True)

    assert len(planned.rules) <= MOST_RULES
    if needed <= MOST_RULES:
        assert len(planned.rules) <= max(needed, MOST_RULES)
        assert not planned.left_out
