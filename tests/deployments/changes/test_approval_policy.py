"""Approval rules: what they require of a change, what voids an approval, and emergencies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from deployments.approvals.selectors import approvals
from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.selectors import evidence
from deployments.changes.services import approvals as change_approvals
from deployments.changes.services import decisions, requests
from deployments.models import Approval, ApprovalRule, ChangeRequest
from deployments.states import ChangeState, Environment
from portal.accounts import teams
from portal.accounts.models import Membership
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid
from portal.notifications.models import Notice
from tests.deployments.decided_changes import approve, describe_approvals, request_change, rule
from tests.deployments.refusals import refused
from tests.deployments.world import World


def test_two_approvals_are_two_people(world: World) -> None:
    rule(world)
    change = request_change(world)
    assert describe_approvals(change) == "0 of 2 approvals by a lead or platform admin"

    approve(world.lead, change, "fine")
    world.work()
    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert describe_approvals(change) == "1 of 2 approvals by a lead or platform admin"
    assert world.cluster.writes == []
    with refused(world, Conflict, "approved_already"):
        approve(world.lead, change)

    approve(world.lead2, change)
    world.work()
    change.refresh_from_db()
    assert change.state == ChangeState.APPLYING
    names = ["change.approval_given", "change.approved"]
    events = AuditEvent.objects.filter(action__in=names).order_by("id")
    assert [(event.action, event.actor_name) for event in events] == [
        ("change.approval_given", "lead"),
        ("change.approved", "lead2"),
    ]
    assert Notice.objects.filter(event="approval.decided").count() == 1


def test_an_approval_that_counts_for_nothing_is_refused(world: World) -> None:
    rule(world, "an admin", role="admin", needed=1)
    change = request_change(world)

    with refused(world, Forbidden, "role_required") as raised:
        approve(world.lead, change)
    assert raised[0].message == (
        "Your approval does not count here: 0 of 1 approval by a platform admin."
    )
    assert change_selectors.waiting_for(world.lead) == []
    assert change_selectors.waiting_for(world.admin) == [change.pk]

    approve(world.admin, change)
    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


def test_a_named_viewer_approves_what_the_rule_names_them_for(world: World) -> None:
    rule(world, "security", role="named", people=("viewer",), needed=1, kinds=("deploy",))
    change = request_change(world)
    assert change_selectors.waiting_for(world.viewer) == [change.pk]

    approve(world.viewer, change)
    assert describe_approvals(change).startswith("0 of 1 approval by a lead")
    approve(world.lead, change)

    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED
    assert list(change.approvals.order_by("pk").values_list("user__username", "as_role")) == [
        ("viewer", "named"),
        ("lead", "lead"),
    ]


MATCHES: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({"environments": ("production",)}, {}, 2),
    ({"environments": ("development",)}, {}, 1),
    ({"above_month_amount": Decimal(700)}, {}, 2),
    ({"above_month_amount": Decimal(800)}, {}, 1),
    ({"above_month_amount": Decimal(800)}, {"max_replicas": 2}, 2),
    ({"gpus": ("a10g",)}, {}, 2),
    ({"gpus": ("g5.*",)}, {}, 2),
    ({"gpus": ("h100",)}, {}, 1),
    ({"kinds": ("retire",)}, {}, 1),
    ({"team": "nlp"}, {}, 1),
    ({"is_enabled": False}, {}, 1),
]


def test_a_rule_applies_only_to_matching_requests(world: World) -> None:
    one, needed_by_number = rule(world), {}
    for number, (changed, values_of_request, needed) in enumerate(MATCHES):
        values = {"name": "two leads", "needed": 2, **changed}
        rules.change(actor=world.admin, rule_id=one.pk, draft=RuleDraft(**values))
        change = request_change(world, name=f"detector{number}", **values_of_request)
        [row] = approvals.status_of(change).rows
        needed_by_number[number] = (row.requirement.needed, needed)

    assert {pair[0] == pair[1] for pair in needed_by_number.values()} == {True}, needed_by_number


def test_a_deployment_keeps_its_requested_environment(world: World) -> None:
    rule(world, environments=("production",))
    draft = world.draft()
    draft = type(draft)(
        draft.version_id, draft.cluster_id, draft.name, draft.spec, Environment.STAGING
    )

    change = requests.request_deploy(actor=world.member, draft=draft)

    assert change.deployment.environment == "staging"
    assert approvals.status_of(change).rows[0].requirement.needed == 1


def test_a_rule_that_comes_later_voids_the_approvals_given_before(world: World) -> None:
    rule(world)
    change = request_change(world)
    approve(world.lead, change)
    shown = ChangeRequest.objects.get(pk=change.pk).evidence_hash

    rule(world, "an admin", role="admin", needed=1)
    with pytest.raises(Conflict) as error:
        decisions.approve(actor=world.lead2, change_id=change.pk, evidence_hash=shown)

    assert error.value.code == "evidence_changed"
    assert Approval.objects.get().void_reason == change_approvals.CHANGED
    change.refresh_from_db()
    assert (change.state, change.evidence_hash == shown) == (ChangeState.SUBMITTED, False)
    assert describe_approvals(change).startswith("0 of 2")


def test_a_rule_between_approval_and_run_stops_the_run(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)

    rule(world)
    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert world.cluster.writes == []
    assert describe_approvals(change) == "0 of 2 approvals by a lead or platform admin"
    assert AuditEvent.objects.filter(action="change.approval_voided").count() == 1


def test_the_sweeper_shows_waiting_requests_a_new_rule_at_once(world: World) -> None:
    change = request_change(world)

    rule(world)
    world.work()

    change.refresh_from_db()
    assert describe_approvals(change) == "0 of 2 approvals by a lead or platform admin"
    assert change.evidence_hash == evidence.digest(change)


def test_other_evidence_voids_the_first_of_two_approvals(world: World, settings: Any) -> None:
    rule(world)
    change = request_change(world, engine="triton")
    approve(world.lead, change)

    settings.SLIPWAY_STORAGE_INITIALIZER_IMAGE = "kserve/storage-initializer:other"
    with pytest.raises(Conflict):
        approve(world.lead2, change)

    assert [row.void_reason for row in Approval.objects.all()] == [change_approvals.CHANGED]
    approve(world.lead2, change)
    approve(world.lead, change)
    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


def test_an_approval_lapses_when_the_others_do_not_come(world: World) -> None:
    rule(world)
    change = request_change(world)
    approve(world.lead, change)

    world.clock.move(change_approvals.VALID_SECONDS + 1)
    world.work()

    assert Approval.objects.get().void_reason.endswith("expired.")
    assert describe_approvals(change).startswith("0 of 2")
    approve(world.lead2, change)
    assert describe_approvals(change).startswith("1 of 2")


def test_the_approval_of_who_is_no_lead_any_more_does_not_count(world: World) -> None:
    rule(world)
    change = request_change(world)
    approve(world.lead, change)

    teams.set_member(actor=world.admin, team=world.team, username="lead", role="member")
    approve(world.lead2, change)

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert describe_approvals(change).startswith("1 of 2")


def test_a_lead_who_is_removed_before_the_run_stops_it(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    Membership.objects.filter(user=world.lead).delete()

    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert world.cluster.writes == []


@pytest.mark.parametrize("who", ["member", "lead", "viewer"])
def test_only_platform_admins_write_rules(world: World, who: str) -> None:
    made = rule(world)

    with refused(world, Forbidden, "role_required"):
        rules.make(actor=getattr(world, who), draft=RuleDraft(name="x"))
    with refused(world, Forbidden, "role_required"):
        rules.change(actor=getattr(world, who), rule_id=made.pk, draft=RuleDraft(name="x"))
    assert ApprovalRule.objects.get().name == "two leads"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "name"),
    ({"team": "nobody"}, "team"),
    ({"needed": 0}, "needed"),
    ({"needed": 6}, "needed"),
    ({"role": "king"}, "role"),
    ({"environments": ("moon",)}, "environments"),
    ({"kinds": ("promote",)}, "kinds"),
    ({"gpus": ("",)}, "gpus"),
    ({"above_month_amount": Decimal(-1)}, "above_month_amount"),
    ({"people": ("ghost",)}, "people"),
    ({"role": "named", "needed": 1}, "people"),
    ({"team": "vision", "people": ("stranger",)}, "people"),
]


def test_a_rule_that_nobody_could_satisfy_or_read_is_refused(world: World) -> None:
    errors = []
    for changed, _ in WRONG:
        with refused(world, Invalid) as raised:
            rule(world, **changed)
        errors.append(set(raised[0].fields))

    assert [
        (fields, field in fields) for fields, (_, field) in zip(errors, WRONG, strict=True)
    ] == [(fields, True) for fields in errors]
    assert not ApprovalRule.objects.exists()


def test_changing_a_rule_is_audited_with_before_and_after(world: World) -> None:
    made = rule(world)

    rules.change(
        actor=world.admin,
        rule_id=made.pk,
        draft=RuleDraft(name="two leads", needed=3, is_enabled=False),
    )

    event = AuditEvent.objects.get(action="approval_rule.changed")
    assert (event.before["needed"], event.after["needed"]) == (2, 3)
    assert (event.before["is_enabled"], event.after["is_enabled"]) == (True, False)


@pytest.mark.parametrize("door", ["approve", "reject", "withdraw"])
def test_a_comment_longer_than_a_page_is_refused(world: World, door: str) -> None:
    change, long = request_change(world), "x" * 2001
    calls = {
        "approve": lambda: approve(world.lead, change, long),
        "reject": lambda: decisions.reject(actor=world.lead, change_id=change.pk, comment=long),
        "withdraw": lambda: decisions.withdraw(
            actor=world.member, change_id=change.pk, reason=long
        ),
    }

    with refused(world, Invalid):
        calls[door]()
