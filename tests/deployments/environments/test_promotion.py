"""A version enters production with what staging showed of it: the approver sees it and binds to it."""

from __future__ import annotations

import pytest

from deployments.changes.services import decisions, requests
from deployments.models import (
    DeploymentHealth,
    ModelVersion,
    Rollout,
)
from deployments.states import ChangeState, RolloutPhase
from portal.core.errors import Conflict, Invalid
from tests.deployments import canaries
from tests.deployments import golden_requests as golden
from tests.deployments.environments.promoting import (
    check_golden,
    checks_of,
    protect,
    request_production,
    staged,
)
from tests.deployments.refusals import refused
from tests.deployments.world import World


def test_a_version_that_never_served_in_staging_is_refused(world: World) -> None:
    protect(world)

    with refused(world, Invalid) as raised:
        request_production(world)

    assert raised[0].fields["version_id"] == (
        "detector:1 never served in staging. Deploy it in staging first."
    )


def test_staging_of_another_version_is_no_evidence(world: World) -> None:
    staged(world)
    protect(world)
    world.version1 = world.version2

    with refused(world, Invalid) as raised:
        request_production(world)

    assert "detector:2 never served in staging" in raised[0].message


def test_a_promotion_carries_what_staging_showed(world: World) -> None:
    deployment = staged(world)
    protect(world)

    change = request_production(world)

    assert checks_of(change) == {
        "Promotion": (
            True,
            "detector:1 served as vision/detector r1 in staging: first deployment, ready.",
        )
    }
    assert change.promotion == {
        "environment": "staging",
        "deployment_id": deployment.pk,
        "deployment": "vision/detector",
        "revision_id": deployment.stable_revision_id,
        "revision_number": 1,
        "version": "detector:1",
        "identity": [
            world.version1.bucket,
            world.version1.upload_prefix,
            world.version1.sha256,
        ],
        "rollout_id": None,
        "is_finished": True,
        "progress": "first deployment, ready",
        "finished_at": deployment.first_ready_at and deployment.first_ready_at.isoformat(),
        "golden": "none",
        "golden_detail": "the model has no golden requests",
        "golden_at": None,
    }


def test_a_deployment_that_is_not_ready_yet_is_no_evidence(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft(environment="staging"))
    world.approved(change)
    protect(world)

    with refused(world, Invalid) as raised:
        request_production(world)

    assert raised[0].fields["version_id"] == (
        "detector:1 is vision/detector r1 in staging: first deployment, request applying. "
        "Wait until it is completed there."
    )


def test_golden_requests_must_have_passed_in_staging(world: World) -> None:
    staged(world)
    protect(world, golden_required=True)
    with refused(world, Invalid) as raised:
        request_production(world)
    assert "vision/detector has no golden requests." in raised[0].message

    golden.save(world)
    with refused(world, Invalid) as raised:
        request_production(world)
    assert "its golden requests were not all answered yet" in raised[0].message

    check_golden(world)
    change = request_production(world)
    assert checks_of(change)["Golden requests"] == (
        True,
        "vision/detector r1 in staging: 1 of 1 golden requests passed.",
    )


def test_a_golden_request_that_is_newer_than_its_run_is_not_answered(world: World) -> None:
    staged(world)
    protect(world, golden_required=True)
    golden.save(world)
    check_golden(world)
    world.clock.move(1)
    golden.save(world, "two", 2.0, 4.0)

    with refused(world, Invalid) as raised:
        request_production(world)

    assert "its golden requests were not all answered yet" in raised[0].message


def test_failed_golden_requests_are_refused(world: World) -> None:
    staged(world)
    protect(world, golden_required=True)
    golden.save(world, y=3.0)
    check_golden(world)

    with refused(world, Invalid) as raised:
        request_production(world)

    assert "1 of 1 golden requests failed" in raised[0].message


def test_an_approval_binds_to_the_evidence(world: World) -> None:
    """The approver saw that golden requests passed; then they fail, before the change is applied."""
    staged(world)
    golden.save(world)
    check_golden(world)
    change = request_production(world)
    assert change.promotion["golden"] == "passed"
    shown = change.evidence_hash
    DeploymentHealth.objects.update(golden_verdict="failed", golden_message="1 of 1 failed")

    with pytest.raises(Conflict) as raised:
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=shown)

    assert raised.value.code == "evidence_changed"
    change.refresh_from_db()
    assert (change.state, change.promotion["golden"]) == (ChangeState.SUBMITTED, "failed")
    assert not change.approvals.exists()


def test_the_text_of_the_watch_alone_voids_nothing(world: World) -> None:
    staged(world)
    golden.save(world)
    check_golden(world)
    change = request_production(world)
    check_golden(world)

    approved = decisions.approve(
        actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )

    assert approved.state == ChangeState.APPROVED


def test_rules_that_became_stricter_refuse_the_approval(world: World) -> None:
    change = request_production(world)
    protect(world)
    world.work()
    change.refresh_from_db()

    with refused(world, Invalid) as raised:
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    assert "never served in staging" in raised[0].message


def test_a_canary_needs_the_evidence_and_a_roll_back_does_not(world: World) -> None:
    ModelVersion.objects.update(signature=golden.SIGNATURE)
    world.cluster.pods = golden.Pods({1: golden.double, 2: golden.double})
    production = world.serving()
    protect(world)

    with refused(world, Invalid) as raised:
        requests.request_canary(
            actor=world.member,
            deployment_id=production.pk,
            version_id=world.version2.pk,
            steps=canaries.STEPS,
        )

    assert "detector:2 never served in staging" in raised[0].message
    scaled = requests.request_scale(
        actor=world.member, deployment_id=production.pk, min_replicas=2, max_replicas=2
    )
    assert (scaled.state, scaled.promotion) == (ChangeState.SUBMITTED, {})


def test_another_team_s_staging_is_no_evidence(world: World) -> None:
    deployment = staged(world)
    deployment.team_id = world.stranger.memberships.get().team_id
    deployment.save()
    protect(world)

    with refused(world, Invalid) as raised:
        request_production(world)

    assert "never served in staging" in raised[0].message


def test_golden_requests_that_pass_later_void_no_approval(world: World) -> None:
    staged(world)
    golden.save(world)
    change = request_production(world)
    assert change.promotion["golden"] == "not run"
    check_golden(world)

    approved = decisions.approve(
        actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )

    assert approved.state == ChangeState.APPROVED


def test_a_completed_rollout_in_staging_is_the_evidence(world: World) -> None:
    deployment, rollout = canaries.start(world, environment="staging")
    protect(world)
    world.version1 = world.version2
    with refused(world, Invalid) as raised:
        request_production(world)
    assert "rollout running" in raised[0].message

    Rollout.objects.update(phase=RolloutPhase.COMPLETED, finished_at=world.clock.at)
    change = request_production(world)

    assert change.promotion["rollout_id"] == rollout.pk
    assert change.promotion["progress"] == "rollout completed"
    assert change.promotion["deployment_id"] == deployment.pk
