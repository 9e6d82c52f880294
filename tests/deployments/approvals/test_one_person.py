"""Approvals by accounts of one person count once."""

from __future__ import annotations

import pytest

from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.selectors import changes
from deployments.changes.services import decisions, requests
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from portal.accounts.models import AccountHolder, User
from portal.core import clock
from portal.core.errors import Forbidden
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]


def requested(world: World) -> ChangeRequest:
    """A change that needs two approvals."""
    rules.make(actor=world.admin, draft=RuleDraft(name="two", needed=2))
    return requests.request_deploy(actor=world.member, draft=world.draft())


def approve(actor: User, change: ChangeRequest) -> None:
    change.refresh_from_db()
    decisions.approve(actor=actor, change_id=change.pk, evidence_hash=change.evidence_hash)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_the_second_approval_is_another_person_s(world: World, is_reverse: bool) -> None:
    change = requested(world)
    account, holder = (world.lead, world.lead2) if is_reverse else (world.lead2, world.lead)
    AccountHolder.objects.create(
        account=account, holder=holder, means="password link", at=clock.now()
    )
    approve(world.lead, change)

    with pytest.raises(Forbidden, match="does not count"):
        approve(world.lead2, change)

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert Approval.objects.count() == 1
    assert changes.waiting_for(world.lead2) == []
    assert changes.waiting_for(world.admin) == [change.pk]
    approve(world.admin, change)
    change.refresh_from_db()
    assert change.state != ChangeState.SUBMITTED
