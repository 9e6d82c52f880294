"""The page shows drift on the cluster and offers the choices to those who may decide."""

from __future__ import annotations

from django.test import Client

from deployments.delivery.domain.drift import Drift, DriftOutcome
from deployments.delivery.domain.edits import Edit
from deployments.models import Deployment
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.world import World

EDIT = Edit(
    "InferenceService", "detector-r1", "spec.predictor.maxReplicas", "1", "3", by="kubectl-edit"
)
PAGE = "/vision/deployments/detector/manifests"
CHOOSE = "/vision/deployments/detector/drift"


def pending_drift(world: World) -> Deployment:
    deployment = world.serving()
    at = clock.now()
    drift = Drift(DriftOutcome.PENDING, (EDIT,), at, at).to_json()
    Deployment.objects.filter(pk=deployment.pk).update(drift=drift)
    return deployment


def as_user(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_member_sees_who_changed_what_and_decides(world: World) -> None:
    deployment = pending_drift(world)

    page = as_user(world.member).get(PAGE).content.decode()
    answer = as_user(world.member).post(CHOOSE, {"choice": "re-apply"}, follow=True)

    for text in ("kubectl-edit", "spec.predictor.maxReplicas", "Needs a decision"):
        assert text in page
    # The cluster of this test has no such edit.
    assert "Held, but no longer on the cluster: kubectl-edit changed" in page
    assert "Slipway is reverting" in answer.content.decode()
    deployment.refresh_from_db()
    assert deployment.is_revert_requested


def test_a_viewer_sees_drift_and_may_not_decide(world: World) -> None:
    deployment = pending_drift(world)

    page = as_user(world.viewer).get(PAGE).content.decode()
    as_user(world.viewer).post(CHOOSE, {"choice": "re-apply"})

    assert "kubectl-edit" in page
    assert "Revert to approved" not in page
    deployment.refresh_from_db()
    assert not deployment.is_revert_requested


def test_a_stranger_gets_not_found(world: World) -> None:
    pending_drift(world)

    answer = as_user(world.stranger).post(CHOOSE, {"choice": "re-apply"})

    assert answer.status_code == 404
