"""Break-glass: who may, for what reason, and the review that must follow."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.approvals.selectors import approvals
from deployments.changes.selectors import changes
from deployments.changes.selectors import emergency_reviews as review_selectors
from deployments.changes.services import emergency_override
from deployments.models import ChangeRequest, EmergencyReview
from deployments.states import ChangeState
from portal.accounts.models import Membership, Team, User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.decided_changes import request_change, rule
from tests.deployments.refusals import refused
from tests.deployments.world import World

REASON = "Checkout is down and this brings back the version that worked."


def emergency(world: World, who: User, change: ChangeRequest, reason: str = REASON) -> Any:
    return emergency_override.approve(
        actor=who, change_id=change.pk, evidence_hash=change.evidence_hash, reason=reason
    )


def test_a_lead_breaks_the_glass_and_the_change_runs_at_once(world: World) -> None:
    rule(world, "three", needed=3)
    change = request_change(world)

    emergency(world, world.lead, change)
    world.work()

    change.refresh_from_db()
    review = EmergencyReview.objects.get()
    assert change.state == ChangeState.APPLYING
    assert approvals.status_of(change).is_emergency
    assert (review.opened_by, review.closed_at) == (world.lead, None)
    event = AuditEvent.objects.get(action="change.approved_in_emergency")
    assert (event.actor_name, event.reason) == ("lead", REASON)
    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert [review.pk for review in review_selectors.waiting_for(world.lead2)] == [review.pk]
    assert [review.pk for review in review_selectors.waiting_for(world.admin)] == [review.pk]
    assert list(review_selectors.waiting_for(world.lead)) == []
    assert list(review_selectors.waiting_for(world.member)) == []
    people = (world.lead2, world.admin, world.lead, world.member)
    assert [review_selectors.count_waiting_for(person) for person in people] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("who", "error"), [("member", Forbidden), ("viewer", Forbidden), ("stranger", NotFound)]
)
def test_who_may_not_break_the_glass(world: World, who: str, error: type[DomainError]) -> None:
    change = request_change(world)

    with refused(world, error):
        emergency(world, getattr(world, who), change)
    assert not EmergencyReview.objects.exists()


@pytest.mark.parametrize("reason", ["", "  urgent ", "x" * 2001])
def test_an_emergency_needs_a_reason_that_says_something(world: World, reason: str) -> None:
    change = request_change(world)

    with refused(world, Invalid) as raised:
        emergency(world, world.lead, change, reason)
    assert "reason" in raised[0].fields


def test_an_emergency_too_approves_only_what_was_shown(world: World) -> None:
    change = request_change(world)
    change.evidence_hash = "0" * 64

    with refused(world, Conflict, "evidence_changed"):
        emergency(world, world.lead, change)


@pytest.mark.parametrize(
    ("who", "error"),
    [("lead", Forbidden), ("lead2", Forbidden), ("member", Forbidden), ("stranger", NotFound)],
)
def test_approver_and_requester_cannot_close_the_review(
    world: World, who: str, error: type[DomainError]
) -> None:
    change = request_change(world, by=world.lead2)
    emergency(world, world.lead, change)
    review = EmergencyReview.objects.get()

    with refused(world, error):
        emergency_override.close_review(
            actor=getattr(world, who), review_id=review.pk, finding="It was right."
        )
    review.refresh_from_db()
    assert review.closed_at is None


def test_a_review_is_closed_once_with_its_findings(world: World) -> None:
    change = request_change(world)
    emergency(world, world.lead, change)
    pk = EmergencyReview.objects.get().pk
    with refused(world, Invalid):
        emergency_override.close_review(actor=world.lead2, review_id=pk, finding="  ")

    emergency_override.close_review(actor=world.lead2, review_id=pk, finding="It was right.")

    review = EmergencyReview.objects.get()
    assert (review.closed_by, review.finding) == (world.lead2, "It was right.")
    assert list(review_selectors.waiting_for(world.admin)) == []
    with refused(world, Conflict, "review_closed"):
        emergency_override.close_review(actor=world.admin, review_id=pk, finding="Again.")


@pytest.mark.parametrize("who", ["lead", "admin"])
def test_nobody_overrides_rules_for_their_own_request(world: World, who: str) -> None:
    asker = getattr(world, who)
    change = request_change(world, by=asker)

    with refused(world, Forbidden, "four_eyes"):
        emergency(world, asker, change)
    assert not changes.may_override(asker, change)
    assert changes.may_override(world.lead2, change)
    assert not EmergencyReview.objects.exists()


def test_an_overdue_review_blocks_the_next_override_of_the_team(world: World) -> None:
    emergency(world, world.lead, request_change(world))
    review = EmergencyReview.objects.get()
    second = request_change(world, name="second")
    world.clock.move((review.due_at - world.clock.at).total_seconds() - 1)
    assert review_selectors.why_blocked(world.team) == ""

    world.clock.move(1)
    with refused(world, Conflict, "review_overdue") as raised:
        emergency(world, world.lead2, second)

    assert f"request {review.change_id}" in str(raised[0])
    emergency_override.close_review(actor=world.lead2, review_id=review.pk, finding="It was right.")
    emergency(world, world.lead2, second)
    second.refresh_from_db()
    assert second.state == ChangeState.APPROVED


def test_an_overdue_review_of_another_team_blocks_nothing(world: World) -> None:
    emergency(world, world.lead, request_change(world))
    EmergencyReview.objects.update(due_at=world.clock.at)

    assert review_selectors.why_blocked(world.team)
    assert review_selectors.why_blocked(Team.objects.get(slug="nlp")) == ""


def test_an_emergency_approval_of_who_is_no_lead_any_more_does_not_run(world: World) -> None:
    change = request_change(world)
    emergency(world, world.lead, change)

    Membership.objects.filter(user=world.lead).update(role="member")
    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert world.cluster.names("InferenceService") == []
