"""A failing database, an unreachable cluster and two leads at once do no harm."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from django.db import OperationalError

from deployments.changes.selectors import evidence
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import Approval, ChangeRequest, ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import quota_checks
from deployments.serving.services import desired_state
from deployments.states import ChangeState
from fleet.kube.domain.errors import Unreachable
from portal.accounts.models import Team, User
from portal.core.errors import Conflict, QuotaExceeded
from tests.deployments.lifecycle.test_races import at_once
from tests.deployments.world import World


def request_change(world: World, name: str = "detector") -> ChangeRequest:
    return requests.request_deploy(actor=world.member, draft=world.draft(name=name))


def approve(actor: User, change: ChangeRequest) -> ChangeRequest:
    return decisions.approve(actor=actor, change_id=change.pk, evidence_hash=change.evidence_hash)


def test_an_approved_change_survives_a_database_that_fails_for_a_moment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = request_change(world)
    approve(world.lead, change)

    def fails(*_: object) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(desired_state, "serve_first", fails)
        with pytest.raises(OperationalError):
            apply_changes.apply_change(change_id=change.pk)
    world.clock.move(31)
    apply_changes.sweep()

    change.refresh_from_db()
    assert change.state == ChangeState.APPLYING


def test_the_approval_names_the_evidence_that_was_shown(world: World) -> None:
    change = request_change(world)
    ModelVersion.objects.filter(pk=world.version1.pk).update(upload_prefix="uploads/another/")
    with pytest.raises(Conflict):
        approve(world.lead, change)
    ModelVersion.objects.filter(pk=world.version1.pk).update(upload_prefix="uploads/third/")
    fresh = _evidence_now(change)

    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=fresh)

    assert Approval.objects.get().evidence_hash == fresh


def _evidence_now(change: ChangeRequest) -> str:
    return evidence.digest(ChangeRequest.objects.get(pk=change.pk))


def test_a_deploy_that_no_cluster_ever_answers_fails_at_its_deadline(world: World) -> None:
    change = request_change(world)
    approve(world.lead, change)
    apply_changes.apply_change(change_id=change.pk)
    world.cluster.fail_with = Unreachable("connection refused")
    reconcile.reconcile(deployment_id=deployment_of(change).pk)
    change.refresh_from_db()
    assert change.state == ChangeState.APPLYING

    world.clock.move(desired_state.PROGRESS_SECONDS + 1)
    reconcile.reconcile(deployment_id=deployment_of(change).pk)

    change.refresh_from_db()
    assert change.state == ChangeState.FAILED
    assert "does not answer" in change.state_reason


def test_a_retirement_that_is_late_fails_and_still_ends(world: World) -> None:
    deployment = world.serving()
    change = requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    approve(world.lead, change)
    apply_changes.apply_change(change_id=change.pk)
    world.cluster.fail_with = Unreachable("connection refused")
    world.clock.move(desired_state.PROGRESS_SECONDS + 1)
    reconcile.reconcile(deployment_id=deployment.pk)
    change.refresh_from_db()
    assert change.state == ChangeState.FAILED
    assert "keeps trying" in change.state_reason

    world.cluster.fail_with = None
    world.clock.move(120)
    world.reconcile_now(deployment)

    assert deployment.is_retired
    assert world.cluster.names("InferenceService") == []


@pytest.mark.django_db(transaction=True)
def test_of_two_approvals_for_the_last_gpu_one_fits(
    transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=1)
    first, second = request_change(world, "first"), request_change(world, "second")
    both_checked = threading.Barrier(2)
    check_quota = quota_checks.check_quota

    def check_then_wait(*args: Any, **options: Any) -> Check:
        quota = check_quota(*args, **options)
        # Where nothing keeps the two apart, both have checked before either writes.
        with contextlib.suppress(threading.BrokenBarrierError):
            both_checked.wait(timeout=1)
        return quota

    def decide(actor: User, change: ChangeRequest) -> object:
        try:
            return approve(actor, change)
        except QuotaExceeded as error:
            return error

    monkeypatch.setattr(quota_checks, "check_quota", check_then_wait)
    results = at_once(lambda: decide(world.lead, first), lambda: decide(world.lead2, second))

    assert sum(isinstance(row, QuotaExceeded) for row in results) == 1, results
    assert ChangeRequest.objects.filter(state=ChangeState.APPROVED).count() == 1
