"""Nothing waits for a cluster or a gateway while a transaction is open."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from deployments.changes.services import requests
from deployments.delivery.services import live_objects
from deployments.models import Deployment
from deployments.preflight.services import preflight
from deployments.rollouts.services import actions
from deployments.serving.gateways import inference
from deployments.serving.services import try_it
from fleet.kube.services import clients, objects
from tests.deployments import canaries
from tests.deployments.world import World
from tests.network_guard import CalledInTransaction, Guarded, guarded, refuse_inside_transaction

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}]


@pytest.fixture
def calls(transactional_db: None, world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests to the cluster. Guarded in the calling thread, and in the pool's."""
    made: list[str] = []
    connect = clients.connect

    def guarded_connect(connection: Any) -> Any:
        refuse_inside_transaction("a cluster's client")
        return connect(connection)

    monkeypatch.setattr(clients, "factory", lambda _connection: Guarded(world.cluster, made))
    monkeypatch.setattr(clients, "connect", guarded_connect)
    clients.forget()
    return made


def test_the_guard_detects_a_call_inside_a_transaction(calls: list[str], world: World) -> None:
    with pytest.raises(CalledInTransaction), transaction.atomic():
        objects.list_objects(
            cluster_id=world.cluster_id, api_version="v1", kind="Pod", namespace="vision", labels={}
        )


def test_deploying_promoting_and_retiring(calls: list[str], world: World) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    rollout.refresh_from_db()
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
    )
    for _ in range(4):
        world.clock.move(30)
        world.reconcile_now(deployment)
    live_objects.compare(actor=world.viewer, deployment_id=deployment.pk)
    retirement = requests.request_retire(actor=world.member, deployment_id=deployment.pk)
    world.approved(retirement)
    world.reconcile_now(deployment)

    assert Deployment.objects.get().is_retired
    assert {"apply", "delete", "list_all", "get"} <= set(calls)


def test_aborting_and_rolling_back(calls: list[str], world: World) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="stop")
    for _ in range(4):
        world.clock.move(30)
        world.reconcile_now(deployment)
    rollout.refresh_from_db()
    assert rollout.phase == "aborted"

    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=2
    )
    world.approved(change)
    world.reconcile_now(deployment)

    assert deployment.candidate_revision_id == change.revision_id


def test_checking_a_draft_and_trying_a_deployment(
    calls: list[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = world.serving()
    sent: list[str] = []
    answer = inference.Answer(200, b"{}", is_cut=False, milliseconds=1.0)
    monkeypatch.setattr(inference, "post_json", guarded(lambda *_: answer, sent, "post_json"))

    try_it.send(actor=world.viewer, deployment_id=deployment.pk, body='{"inputs": []}')
    preflight.check(actor=world.member, draft=world.draft(name="another"))

    assert sent == ["post_json"]
