"""Rules of a schema, which are evaluated as one expression: each refusal is that of the rule alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slipway_localcluster.errors import Cause
from slipway_localcluster.schemas import cel
from slipway_localcluster.schemas.schema import CelRule, Schema
from slipway_localcluster.schemas.values import find_parts, find_rule_faults

SMALL = CelRule("self.size < 10", "is too large", ".size")
EVEN = CelRule("self.size % 2 == 0", "is odd", ".size")
# An error for a value without a name.
NAMED = CelRule("self.name.startsWith('a')", "has no good name", ".name")
LOOSE = CelRule("has(self.name) || self.size > 3", "needs a name")
# A function of Kubernetes that the runtime lacks.
UNKNOWN = CelRule("isURL(self.name)", "is no URL")
RULES = (SMALL, EVEN, NAMED, LOOSE, UNKNOWN)

VALUES = st.fixed_dictionaries(
    {"size": st.integers(0, 12)}, optional={"name": st.sampled_from(["a", "b"])}
)


@given(VALUES, st.lists(st.sampled_from(RULES), unique=True))
def test_each_rule_refuses_as_it_does_alone(value: dict[str, object], rules: list[CelRule]) -> None:
    whole = Schema(rules=tuple(rules))

    faults = list(find_rule_faults(find_parts(value, whole, "spec")))

    alone = [rule for rule in rules if not cel.are_met((rule,), value)]
    assert faults == [
        Cause("FieldValueInvalid", f"Invalid value: {rule.message}", f"spec{rule.place}")
        for rule in alone
    ]


def test_a_rule_with_an_error_is_not_met_and_an_unknown_one_is_not_checked() -> None:
    value = {"size": 4}

    unmet = [rule for rule in RULES if not cel.are_met((rule,), value)]

    assert unmet == [NAMED]
