"""What is refused, with which message, and that nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import decisions, requests
from deployments.models import Approval, ChangeRequest, Deployment, ModelVersion, Rollout
from deployments.rollouts.services import actions
from deployments.states import ChangeState, VersionState
from portal.accounts.models import Team
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, QuotaExceeded
from tests.deployments.refusals import refused
from tests.deployments.world import World


@pytest.mark.parametrize("who", ["viewer", "stranger", "member", "lead", "admin"])
def test_who_may_request(world: World, who: str) -> None:
    actor = getattr(world, who)
    expected = {"viewer": Forbidden, "stranger": NotFound}.get(who)

    if expected is None:
        change = requests.request_deploy(actor=actor, draft=world.draft())
        assert change.requester == actor
        return
    with refused(world, expected):
        requests.request_deploy(actor=actor, draft=world.draft())


@pytest.mark.parametrize(
    ("who", "error", "code"),
    [
        ("viewer", Forbidden, "role_required"),
        ("member", Forbidden, "role_required"),
        ("stranger", NotFound, "not_found"),
        ("lead", None, ""),
        ("admin", None, ""),
    ],
)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_who_may_decide(
    world: World, who: str, error: type[DomainError], code: str, decision: str
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    actor = getattr(world, who)

    def decide() -> None:
        if decision == "approve":
            hash_ = change.evidence_hash
            decisions.approve(actor=actor, change_id=change.pk, evidence_hash=hash_)
        else:
            decisions.reject(actor=actor, change_id=change.pk, comment="no")

    if error is None:
        decide()
        assert Approval.objects.get().user == actor
        return
    with refused(world, error, code):
        decide()


@pytest.mark.parametrize("who", ["lead", "admin"])
def test_nobody_approves_their_own_request(world: World, who: str) -> None:
    actor = getattr(world, who)
    change = requests.request_deploy(actor=actor, draft=world.draft())

    with refused(world, Forbidden, "four_eyes"):
        decisions.approve(actor=actor, change_id=change.pk, evidence_hash=change.evidence_hash)


def test_approving_something_else_than_was_shown_is_refused(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    with refused(world, Conflict, "evidence_changed"):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash="0" * 64)


def test_a_request_is_decided_once(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    with refused(world, Conflict, "change_state"):
        decisions.approve(
            actor=world.lead2, change_id=change.pk, evidence_hash=change.evidence_hash
        )
    with refused(world, Conflict, "change_state"):
        decisions.reject(actor=world.lead2, change_id=change.pk, comment="late")


def test_an_approval_is_void_when_what_was_approved_changes(world: World, settings: Any) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft(engine="triton"))
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    settings.SLIPWAY_STORAGE_INITIALIZER_IMAGE = "kserve/storage-initializer:other"

    world.work()

    shown = change.evidence_hash
    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert change.evidence_hash != shown
    assert Approval.objects.get().void_reason.startswith("The request changed after this approval")
    assert world.cluster.writes == []
    assert AuditEvent.objects.filter(action="change.approval_voided").count() == 1


def test_a_new_default_image_does_not_touch_what_serves(world: World, settings: Any) -> None:
    deployment = world.serving()
    world.cluster.calls.clear()
    settings.SLIPWAY_TRITON_IMAGE = "nvcr.io/nvidia/tritonserver:99.01-py3"

    world.reconcile_now(deployment)

    assert world.cluster.writes == []


def test_over_quota_is_refused_with_what_is_left(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=2)
    world.version1.model.team.refresh_from_db()

    with refused(world, QuotaExceeded, "quota_exceeded") as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(max_replicas=3))

    assert "3 of 2 GPUs of vision" in raised[0].message
    assert "lower max replicas to 2" in raised[0].fields["max_replicas"]


def test_quota_counts_what_is_approved_but_not_running(world: World) -> None:
    Team.objects.filter(pk=world.team.pk).update(quota_gpus=3)
    first = requests.request_deploy(actor=world.member, draft=world.draft("one", max_replicas=2))
    second = requests.request_deploy(actor=world.member, draft=world.draft("two", max_replicas=2))
    decisions.approve(actor=world.lead, change_id=first.pk, evidence_hash=first.evidence_hash)

    with refused(world, QuotaExceeded):
        decisions.approve(actor=world.lead, change_id=second.pk, evidence_hash=second.evidence_hash)


@pytest.mark.parametrize("name", ["Detector", "a_b", "-x", "x" * 31, "det-r2", ""])
def test_a_name_that_kubernetes_refuses_is_refused(world: World, name: str) -> None:
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(name))
    assert raised[0].fields["name"]


def test_a_taken_name_is_refused(world: World) -> None:
    requests.request_deploy(actor=world.member, draft=world.draft())

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())
    assert "request a canary" in raised[0].fields["name"]


@pytest.mark.parametrize("state", [s for s in VersionState if s != VersionState.READY], ids=str)
def test_a_version_that_is_not_ready_is_refused(world: World, state: VersionState) -> None:
    ModelVersion.objects.filter(pk=world.version1.pk).update(state=state)

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())
    assert state in raised[0].fields["version_id"]


def test_a_version_archived_after_the_request_cannot_be_approved(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    ModelVersion.objects.filter(pk=world.version1.pk).update(state=VersionState.ARCHIVED)

    with refused(world, Invalid, "version_not_ready"):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)


def test_one_open_change_per_deployment(world: World) -> None:
    deployment = world.serving()
    requests.request_retire(actor=world.member, deployment_id=deployment.pk)

    with refused(world, Conflict, "change_open"):
        requests.request_retire(actor=world.member, deployment_id=deployment.pk)


def test_an_undecided_request_expires_and_frees_its_name(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    world.clock.move(14 * 24 * 3600 + 1)
    world.work()

    change.refresh_from_db()
    assert change.state == ChangeState.EXPIRED
    assert Deployment.objects.get().is_retired


def test_withdrawing_closes_the_request(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    decisions.withdraw(actor=world.member, change_id=change.pk, reason="mistake")

    assert ChangeRequest.objects.get().state == ChangeState.WITHDRAWN
    with refused(world, Conflict, "change_state"):
        decisions.withdraw(actor=world.member, change_id=change.pk)


_STEPS = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}]
_ROLLOUT_ACTS = {
    "promote": lambda actor, pk: actions.promote(actor=actor, rollout_id=pk, evidence_hash="x"),
    "promote_fully": lambda actor, pk: actions.promote_fully(
        actor=actor, rollout_id=pk, evidence_hash="x"
    ),
    "pause": lambda actor, pk: actions.pause(actor=actor, rollout_id=pk),
    "abort": lambda actor, pk: actions.abort(actor=actor, rollout_id=pk),
}


@pytest.mark.parametrize("who", ["viewer", "stranger", "member"])
def test_who_may_not_move_a_rollout(world: World, who: str) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.lead2,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=_STEPS,
    )
    world.approved(change)
    pk = Rollout.objects.get().pk
    actor = getattr(world, who)

    for act in ("promote", "promote_fully") if who == "member" else _ROLLOUT_ACTS:
        with refused(world, NotFound if who == "stranger" else Forbidden):
            _ROLLOUT_ACTS[act](actor, pk)


def test_a_member_pauses_and_aborts_a_rollout(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.lead2, deployment_id=deployment.pk, version_id=world.version2.pk, steps=_STEPS
    )
    world.approved(change)
    pk = Rollout.objects.get().pk

    for act in ("pause", "abort"):
        _ROLLOUT_ACTS[act](world.member, pk)

    moves = AuditEvent.objects.filter(actor_name="member", action__startswith="rollout.")
    assert set(moves.values_list("action", flat=True)) >= {"rollout.paused", "rollout.aborted"}
