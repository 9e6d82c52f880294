"""Going back through Git: each effect is a commit, and what is so is read from the cluster."""

from __future__ import annotations

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import actions
from tests.deployments.delivery.test_git_delivery import (
    deployed,
    draft,
    operator,
    reconcile_later,
    route_weights,
    writes,
)
from tests.deployments.git_server import GitServer, server
from tests.deployments.gitops_operator import FOLDER, Operator
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

__all__ = ["draft", "operator", "server"]

STEPS = [{"weight": 10, "soak_seconds": 0, "min_requests": 0}]


def follow(world: World, operator: Operator, deployment: Deployment, workload: str) -> None:
    """The operator brings each commit to the cluster, where the workload comes up."""
    for _ in range(5):
        operator.sync()
        if workload in world.cluster.names("InferenceService"):
            world.cluster.make_ready(workload)
        reconcile_later(world, deployment)


def test_a_roll_back_is_committed_and_done_only_once_the_cluster_is(
    world: World, operator: Operator, server: GitServer
) -> None:
    deployment = deployed(world, operator)
    canary = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    world.approved(canary)
    follow(world, operator, deployment, "detector-r2")
    rollout = Rollout.objects.get()
    actions.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash
    )
    follow(world, operator, deployment, "detector-r2")
    assert route_weights(server) == {"detector-r2-predictor": 100}

    back = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=1
    )
    world.approved(back)

    assert f"{FOLDER}/detector/inferenceservice-detector-r1.yaml" in server.files()
    assert route_weights(server) == {"detector-r2-predictor": 100}, "r1 is not ready yet"
    assert deployment.stable_revision.number == 2

    follow(world, operator, deployment, "detector-r1")

    back.refresh_from_db()
    assert back.state == "done"
    assert deployment.stable_revision.version == world.version1
    assert route_weights(server) == {"detector-r1-predictor": 100}
    assert f"{FOLDER}/detector/inferenceservice-detector-r2.yaml" not in server.files()
    assert f"Change-Request: {back.pk} " in server.git("log", "--format=%B", "main")
    assert writes(world) == []
