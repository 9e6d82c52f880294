"""Which rules match, who counts, and what can never be enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.approvals.domain import requirement as one_requirement
from deployments.approvals.domain import rules as approval_rules
from deployments.approvals.domain.approver_roles import ApproverRole, RequiredRole
from deployments.approvals.domain.requirement import Person, Requirement
from deployments.approvals.domain.rules import Approver, ChangeFacts, Rule

REQUESTER, ANA, BO, CHI, DEE = 1, 2, 3, 4, 5
SUBJECT = ChangeFacts(
    team_id=7,
    environment="production",
    kind="deploy",
    instance_types=("p5.48xlarge",),
    gpu_names=("NVIDIA-H100-80GB-HBM3",),
    has_cost=True,
    month_amount=Decimal("2938.00"),
)


def rule(**changed: Any) -> Rule:
    return Rule(**{"id": 1, "name": "a rule", **changed})


def is_satisfied(required: Sequence[Requirement], approvers: Sequence[Approver]) -> bool:
    rows = approval_rules.progress_of(required, approvers, requester_id=REQUESTER)
    return approval_rules.is_satisfied(rows)


@pytest.mark.parametrize(
    ("changed", "is_matched"),
    [
        ({}, True),
        ({"team_id": 7}, True),
        ({"team_id": 8}, False),
        ({"environments": ("production", "staging")}, True),
        ({"environments": ("development",)}, False),
        ({"kinds": ("deploy",)}, True),
        ({"kinds": ("retire",)}, False),
        ({"above_month_amount": Decimal("2937.99")}, True),
        ({"above_month_amount": Decimal("2938.00")}, False),
        ({"gpus": ("h100",)}, True),
        ({"gpus": ("p5.*",)}, True),
        ({"gpus": ("p5",)}, False),
        ({"gpus": ("a10g", "P5.48XLARGE")}, True),
        ({"gpus": ("p4d.*",), "kinds": ("deploy",)}, False),
        ({"only_opening": True}, False),
    ],
)
def test_a_rule_matches_when_all_that_it_says_does(
    changed: dict[str, object], is_matched: bool
) -> None:
    assert approval_rules.matches(rule(**changed), SUBJECT) is is_matched


def test_a_price_that_is_not_known_counts_as_above_and_no_cost_does_not() -> None:
    above = rule(above_month_amount=Decimal(1000))

    assert approval_rules.matches(above, replace(SUBJECT, month_amount=None))
    assert not approval_rules.matches(above, replace(SUBJECT, month_amount=None, has_cost=False))


def test_without_rules_one_lead_or_admin_other_than_the_requester_is_enough() -> None:
    requirements = approval_rules.requirements([], SUBJECT)

    assert [requirement.rule for requirement in requirements] == ["Four eyes"]
    for role, stands_for, is_enough in [
        (ApproverRole.LEAD, None, True),
        (ApproverRole.ADMIN, None, True),
        (ApproverRole.DELEGATE, BO, True),
        (ApproverRole.DELEGATE, REQUESTER, False),
        (ApproverRole.NAMED, None, False),
    ]:
        one = Approver(person_id=ANA, role=role, stands_for_id=stands_for)
        assert is_satisfied(requirements, [one]) is is_enough


def test_approvals_implied_by_a_stricter_rule_are_not_required_twice() -> None:
    two = rule(name="two leads", needed=2)
    admin = rule(id=2, name="an admin", role=RequiredRole.ADMIN)

    assert [requirement.rule for requirement in approval_rules.requirements([two], SUBJECT)] == [
        "two leads"
    ]
    assert [
        requirement.rule for requirement in approval_rules.requirements([two, admin], SUBJECT)
    ] == [
        "two leads",
        "an admin",
    ]


def test_a_named_person_does_not_replace_the_lead() -> None:
    named = rule(name="security", role=RequiredRole.NAMED, people=(Person(DEE, "dee"),))
    requirements = approval_rules.requirements([named], SUBJECT)
    dee = Approver(person_id=DEE, role=ApproverRole.NAMED)
    lead = Approver(person_id=ANA, role=ApproverRole.LEAD)

    rows = approval_rules.progress_of(requirements, [dee], requester_id=REQUESTER)
    assert [(row.requirement.rule, row.given, row.missing) for row in rows] == [
        ("security", 1, 0),
        ("Four eyes", 0, 1),
    ]
    assert is_satisfied(requirements, [dee, lead])


def test_a_lead_and_their_own_delegate_are_one_approval() -> None:
    requirements = approval_rules.requirements([rule(needed=2)], SUBJECT)
    lead = Approver(person_id=ANA, role=ApproverRole.LEAD)
    delegate = Approver(person_id=BO, role=ApproverRole.DELEGATE, stands_for_id=ANA)
    other = Approver(person_id=CHI, role=ApproverRole.LEAD)
    rows = approval_rules.progress_of(requirements, [lead, delegate], requester_id=REQUESTER)

    assert [row.description for row in rows] == ["1 of 2 approvals by a lead or platform admin"]
    assert not approval_rules.would_help(rows, [lead], delegate, requester_id=REQUESTER)
    assert approval_rules.would_help(rows, [lead], other, requester_id=REQUESTER)
    assert is_satisfied(requirements, [lead, delegate, other])


def test_a_requirement_names_its_reason() -> None:
    expensive = rule(
        kinds=("deploy",),
        environments=("production",),
        gpus=("h100",),
        above_month_amount=Decimal(1000),
    )

    [one, _] = approval_rules.requirements(
        [replace(expensive, role=RequiredRole.NAMED, people=(Person(DEE, "dee"),))], SUBJECT
    )

    assert one.why == (
        "a deploy in production on NVIDIA-H100-80GB-HBM3 that may cost $2,938 a month, above $1,000"
    )
    assert one.who == "dee"
    assert one_requirement.from_json(one.to_json()) == one


def test_nothing_is_approved_without_a_requirement() -> None:
    lead = Approver(person_id=ANA, role=ApproverRole.LEAD)

    assert not is_satisfied((), [lead])


people = st.builds(Person, st.integers(1, 6), st.just("x"))
rules = st.builds(
    Rule,
    id=st.integers(1, 9),
    name=st.sampled_from("abcdef"),
    team_id=st.sampled_from([None, 7, 8]),
    environments=st.sampled_from([(), ("production",), ("staging",)]),
    kinds=st.sampled_from([(), ("deploy",), ("scale",)]),
    above_month_amount=st.sampled_from([None, Decimal(10), Decimal(5000)]),
    gpus=st.sampled_from([(), ("h100",), ("g5.*",)]),
    role=st.sampled_from(list(RequiredRole)),
    people=st.lists(people, max_size=2, unique_by=lambda one: one.id).map(tuple),
    needed=st.integers(1, 3),
)
# Leads are 11 to 13, so that no delegation is mutual.
plain = st.builds(
    Approver,
    person_id=st.integers(1, 13),
    role=st.sampled_from([ApproverRole.LEAD, ApproverRole.ADMIN, ApproverRole.NAMED]),
)
delegates = st.builds(
    Approver,
    person_id=st.integers(1, 6),
    role=st.just(ApproverRole.DELEGATE),
    stands_for_id=st.integers(11, 13),
)
given_lists = st.lists(plain | delegates, max_size=6)


@settings(max_examples=50)
@given(st.lists(rules, max_size=3), given_lists)
def test_the_requester_alone_is_never_enough(some: list[Rule], by: list[Approver]) -> None:
    requirements = approval_rules.requirements(some, SUBJECT)
    own = [
        replace(item, stands_for_id=REQUESTER)
        if item.role == ApproverRole.DELEGATE
        else replace(item, person_id=REQUESTER)
        for item in by
        if not (item.role == ApproverRole.DELEGATE and _is_named_anywhere(some, item.person_id))
    ]

    assert not is_satisfied(requirements, own)


def _is_named_anywhere(some: list[Rule], person_id: int) -> bool:
    return any(person.id == person_id for item in some for person in item.people)


@settings(max_examples=50)
@given(st.lists(rules, max_size=3), rules, given_lists)
def test_adding_a_rule_never_loosens(some: list[Rule], more: Rule, by: list[Approver]) -> None:
    before = approval_rules.requirements(some, SUBJECT)
    after = approval_rules.requirements([*some, more], SUBJECT)

    if is_satisfied(after, by):
        assert is_satisfied(before, by)


@settings(max_examples=50)
@given(st.lists(rules, max_size=3), given_lists)
def test_leaving_out_what_is_implied_changes_no_answer(
    some: list[Rule], by: list[Approver]
) -> None:
    kept = approval_rules.requirements(some, SUBJECT)
    each = [
        requirement
        for item in some
        for requirement in approval_rules.requirements([item], SUBJECT)
        if requirement.rule_id is not None
    ]

    is_enough = is_satisfied(kept, by)

    whole = approval_rules.requirements([], SUBJECT) + tuple(each)
    assert is_enough == is_satisfied(whole, by)


@settings(max_examples=50)
@given(st.lists(rules, max_size=3), given_lists, plain | delegates)
def test_what_does_not_help_leaves_the_answer(
    some: list[Rule], by: list[Approver], one: Approver
) -> None:
    requirements = approval_rules.requirements(some, SUBJECT)
    rows = approval_rules.progress_of(requirements, by, requester_id=REQUESTER)

    if not approval_rules.would_help(rows, by, one, requester_id=REQUESTER):
        after = is_satisfied(requirements, [*by, one])
        assert after == is_satisfied(requirements, by)
