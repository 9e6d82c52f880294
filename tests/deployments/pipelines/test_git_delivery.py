"""Pipelines of a team that delivers by commits: the cluster is only read."""

from __future__ import annotations

import pytest

from deployments.changes.selectors.subjects import pipeline_of
from deployments.delivery.gateways import git
from deployments.models import GitExport, Pipeline
from deployments.pipelines.services import requests
from deployments.states import DeploymentState
from tests.deployments.delivery.test_git_delivery import draft, operator, writes
from tests.deployments.git_server import GitServer, server
from tests.deployments.gitops_operator import FOLDER, Operator
from tests.deployments.pipelines_world import approve, reconcile_now, request_change, start_router
from tests.deployments.world import World

__all__ = ["draft", "operator", "server"]


def follow(world: World, operator: Operator, pipeline: Pipeline) -> Pipeline:
    """The operator applies each commit, and KServe starts the router."""
    for _ in range(3):
        world.clock.move(20)
        operator.sync()
        if "both" in world.cluster.names("InferenceGraph"):
            start_router(world, pipeline)
        reconcile_now(pipeline, rounds=1)
    return pipeline


def test_a_pipeline_is_committed_and_ready_only_when_the_cluster_shows_it(
    world: World, operator: Operator, server: GitServer
) -> None:
    change = request_change(world)
    world.cluster.calls.clear()
    approve(world.lead, change)

    pipeline = reconcile_now(pipeline_of(change))

    assert writes(world) == []
    assert server.commits() == [f"vision/both: push router (change request {change.pk})"]
    assert f"{FOLDER}/both/inferencegraph-both.yaml" in server.files()
    message = server.git("log", "-1", "--format=%b", "main").splitlines()
    assert message[:4] == [
        "Pipeline: vision/both on eks-test",
        f"Change-Request: {change.pk} (create)",
        "Requested-by: member",
        "Approved-by: lead",
    ]
    assert pipeline.state == DeploymentState.PROGRESSING
    assert pipeline.state_reason.endswith("The GitOps operator has not applied it yet.")

    follow(world, operator, pipeline)

    assert (pipeline.state, pipeline.state_reason) == (DeploymentState.READY, "")
    assert f"{FOLDER}/both/httproute-both.yaml" in server.files()
    assert writes(world) == []
    export = GitExport.objects.get()
    assert (export.pipeline, export.deployment, export.step) == (pipeline, None, "in sync")


def test_a_retirement_empties_its_folder(
    world: World, operator: Operator, server: GitServer
) -> None:
    change = request_change(world)
    approve(world.lead, change)
    pipeline = follow(world, operator, reconcile_now(pipeline_of(change)))
    approve(world.lead, requests.request_retire(actor=world.member, pipeline_id=pipeline.pk))

    reconcile_now(pipeline)
    follow(world, operator, pipeline)

    assert pipeline.is_retired
    assert not [path for path in server.files() if path.startswith(f"{FOLDER}/both/")]
    assert writes(world) == []


def test_a_repository_that_refuses_is_the_reason_and_is_tried_again(
    world: World, operator: Operator, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = request_change(world)
    approve(world.lead, change)

    def refuse(*_: object, **__: object) -> None:
        raise git.GitRefused("the branch is protected")

    with monkeypatch.context() as patched:
        patched.setattr(git, "commit", refuse)
        pipeline = reconcile_now(pipeline_of(change))
    assert pipeline.state_reason == "Git: the branch is protected"

    world.clock.move(16)
    reconcile_now(pipeline)
    assert server.commits() == [f"vision/both: push router (change request {change.pk})"]
