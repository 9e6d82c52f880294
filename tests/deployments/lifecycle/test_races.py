"""Two connections at once: of two people or workers, exactly one moves the row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.selectors import changes
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import Approval, ChangeRequest, Deployment, Rollout
from deployments.rollouts.services import actions
from deployments.rollouts.services import reconcile as rollout_reconcile
from deployments.states import ChangeState
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict
from tests.deployments import canaries
from tests.deployments.world import World
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = [{"weight": w, "soak_seconds": 0, "min_requests": 0} for w in (10, 50)]


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each returned or raised, in their order."""
    barrier = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = acts[index]()
        except Conflict as error:
            results[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE_SECONDS)
    return results


def test_an_approval_that_another_one_overtakes_is_a_conflict(
    transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is committed after this one read the request, before it read the approvals given."""
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    shown, whole, others = change.evidence_hash, changes.get_visible, [world.lead2]

    def overtaken(**asked: Any) -> ChangeRequest:
        found = whole(**asked)
        if others:
            decisions.approve(actor=others.pop(), change_id=change.pk, evidence_hash=shown)
            found.refresh_from_db(fields=["approvals"])
        return found

    monkeypatch.setattr(changes, "get_visible", overtaken)
    with pytest.raises(Conflict) as refused:
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=shown)

    assert refused.value.code == "change_state"
    assert [row.user_id for row in Approval.objects.all()] == [world.lead2.pk]


def test_of_two_approvals_one_counts(transactional_db: None, world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    def approve(who: Any) -> Any:
        return lambda: decisions.approve(
            actor=who, change_id=change.pk, evidence_hash=change.evidence_hash
        )

    results = at_once(approve(world.lead), approve(world.lead2))

    assert sum(isinstance(row, Conflict) for row in results) == 1
    assert Approval.objects.count() == 1
    assert ChangeRequest.objects.get().state == ChangeState.APPROVED


def test_of_two_promotions_one_counts(transactional_db: None, world: World) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    canaries.serve(world, deployment, 10)
    rollout.refresh_from_db()

    def promote(who: Any) -> Any:
        return lambda: actions.promote(
            actor=who, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
        )

    results = at_once(promote(world.lead), promote(world.lead2))

    assert sum(isinstance(row, Conflict) for row in results) == 1, results
    assert Rollout.objects.get().step_index == 1
    assert AuditEvent.objects.filter(action="rollout.promoted").count() == 1
    assert Deployment.objects.get().candidate_weight == 50


def test_promotion_and_abort_at_once_end_with_no_traffic_on_the_candidate(
    transactional_db: None, world: World
) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    canaries.serve(world, deployment, 10)
    rollout.refresh_from_db()

    at_once(
        lambda: actions.promote(
            actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
        ),
        lambda: actions.abort(actor=world.member, rollout_id=rollout.pk, reason="stop"),
    )
    world.reconcile_now(deployment)

    assert Rollout.objects.get().phase == "aborting"
    assert deployment.candidate_weight == 0
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_two_workers_begin_and_push_a_change_once(transactional_db: None, world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    begun = at_once(*[lambda: apply_changes.apply_change(change_id=change.pk)] * 2)
    at_once(*[lambda: reconcile.reconcile(deployment_id=deployment_of(change).pk)] * 2)

    assert sorted(map(str, begun)) == sorted(["None", str(change.deployment_id)])
    pushes = [call for call in world.cluster.writes if call[1] == "InferenceService"]
    assert len(pushes) == 1
    assert AuditEvent.objects.filter(action="change.applying").count() == 1


def test_a_lead_who_clicks_during_an_automatic_abort_does_not_bring_the_candidate_back(
    transactional_db: None, world: World
) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    world.clock.move(10)
    canaries.send(world, "detector-r1", 900)
    canaries.send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    shown = Rollout.objects.get().evidence_hash
    world.clock.move(5)
    canaries.send(world, "detector-r1", 900)
    canaries.send(world, "detector-r2", 20, failure=80)

    clicked, _ = at_once(
        lambda: actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown),
        lambda: rollout_reconcile.advance(rollout_id=rollout.pk),
    )
    world.reconcile_now(deployment)

    assert isinstance(clicked, Conflict)
    assert Rollout.objects.get().phase == "aborting"
    assert not AuditEvent.objects.filter(action="rollout.promoted").exists()
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}


def test_of_two_leads_who_approve_at_once_both_count_where_two_are_needed(
    transactional_db: None, world: World
) -> None:
    rules.make(actor=world.admin, draft=RuleDraft(name="two", needed=2))
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    def approve(who: str) -> object:
        return decisions.approve(
            actor=getattr(world, who),
            change_id=change.pk,
            evidence_hash=change.evidence_hash,
        )

    results = at_once(lambda: approve("lead"), lambda: approve("lead2"))

    change.refresh_from_db()
    assert not [row for row in results if isinstance(row, Conflict)]
    assert change.state == ChangeState.APPROVED
    assert Approval.objects.filter(void_reason="").count() == 2
    assert AuditEvent.objects.filter(action="change.approved").count() == 1


def test_an_approval_while_a_rule_is_made_never_runs_without_that_rule(
    transactional_db: None, world: World
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    at_once(
        lambda: decisions.approve(
            actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
        ),
        lambda: rules.make(actor=world.admin, draft=RuleDraft(name="two", needed=2)),
    )
    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert world.cluster.writes == []
    assert not Approval.objects.filter(is_approved=True, void_reason="").exists()
