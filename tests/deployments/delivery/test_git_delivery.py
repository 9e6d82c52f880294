"""Delivery by commits, to a real Git server; an operator applies what is in Git to the cluster."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.delivery.gateways import git
from deployments.delivery.gateways.git import GitCommit
from deployments.delivery.services import git_backend, git_settings
from deployments.delivery.services.git_settings import GitDraft
from deployments.models import Deployment, DeploymentEvent, GitDelivery, GitExport, Rollout
from deployments.rollouts.services import actions
from deployments.states import ChangeState, DeploymentState
from fleet.models import Workload
from tests.deployments.git_server import TOKEN, USERNAME, GitServer, server
from tests.deployments.gitops_operator import FOLDER, Operator
from tests.deployments.world import World

__all__ = ["server"]


@pytest.fixture
def draft(server: GitServer) -> GitDraft:
    return GitDraft(
        is_enabled=True,
        repository_url=server.url,
        path="platform",
        username=USERNAME,
        credential="fleet-repo",
    )


@pytest.fixture
def operator(world: World, server: GitServer, draft: GitDraft) -> Operator:
    git_settings.save(actor=world.admin, team=world.team, draft=draft)
    return Operator(world, server)


def reconcile_later(world: World, deployment: Deployment) -> Deployment:
    world.clock.move(20)
    return world.reconcile_now(deployment)


def deployed(world: World, operator: Operator) -> Deployment:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.cluster.calls.clear()
    world.approved(change)
    deployment: Deployment = deployment_of(change)
    for _ in range(3):
        operator.sync()
        world.cluster.make_ready("detector-r1")
        reconcile_later(world, deployment)
    return deployment


def writes(world: World) -> list[tuple[str, ...]]:
    return [call for call in world.cluster.calls if call[0] in ("apply", "delete")]


def test_a_committed_deployment_is_ready_only_once_the_cluster_is(
    world: World, operator: Operator, server: GitServer
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.cluster.calls.clear()

    world.approved(change)

    assert writes(world) == []
    assert server.commits() == [f"vision/detector: push r1 (change request {change.pk})"]
    assert Deployment.objects.get().state == DeploymentState.PROGRESSING
    assert f"{FOLDER}/detector/inferenceservice-detector-r1.yaml" in server.files()
    log = server.git("log", "-1", "--format=%b", "main").splitlines()
    assert log[:4] == [
        "Deployment: vision/detector on eks-test",
        f"Change-Request: {change.pk} (deploy)",
        "Requested-by: member",
        "Approved-by: lead",
    ]
    operator.sync()
    world.cluster.make_ready("detector-r1")
    reconcile_later(world, deployment_of(change))
    operator.sync()
    deployment = reconcile_later(world, deployment_of(change))
    assert deployment.state == DeploymentState.READY
    change.refresh_from_db()
    assert change.state == ChangeState.DONE
    assert writes(world) == []
    assert [commit.split(": ")[1].split(" (")[0] for commit in server.commits()] == [
        "push r1",
        "route",
    ]


def test_files_follow_the_layout_of_kustomize_and_hold_no_secret(
    world: World, operator: Operator, server: GitServer
) -> None:
    deployed(world, operator)

    top = yaml.safe_load(server.text(f"{FOLDER}/kustomization.yaml"))
    own = yaml.safe_load(server.text(f"{FOLDER}/detector/kustomization.yaml"))
    assert top["resources"] == ["_shared", "detector"]
    assert "httproute-detector.yaml" in own["resources"]
    for folder in top["resources"]:
        listed = yaml.safe_load(server.text(f"{FOLDER}/{folder}/kustomization.yaml"))["resources"]
        there = [
            path.rpartition("/")[2]
            for path in server.files()
            if path.startswith(f"{FOLDER}/{folder}/")
        ]
        assert sorted([*listed, "kustomization.yaml"]) == sorted(there)
    assert not [path for path in server.files() if "secret" in path]
    assert TOKEN not in server.git("log", "-p", "main")


def test_another_pass_makes_no_commit_and_no_request_to_git(
    world: World, operator: Operator, server: GitServer
) -> None:
    deployment = deployed(world, operator)
    commits, requests = server.commits(), server.requests

    reconcile_later(world, deployment)
    reconcile_later(world, deployment)

    assert server.commits() == commits
    assert server.requests == requests


def test_a_retirement_is_committed_in_an_order_that_drops_no_request(
    world: World, operator: Operator, server: GitServer
) -> None:
    deployment = deployed(world, operator)
    before = len(server.commits())
    retire = requests.request_retire(actor=world.member, deployment_id=deployment.pk)

    world.approved(retire)
    assert f"{FOLDER}/detector/httproute-detector.yaml" not in server.files()
    assert f"{FOLDER}/detector/inferenceservice-detector-r1.yaml" in server.files()
    operator.sync()
    reconcile_later(world, deployment)
    operator.sync()
    deployment = reconcile_later(world, deployment)

    assert deployment.is_retired
    assert [commit.split(": ")[1].split(" (")[0] for commit in server.commits()[before:]] == [
        "remove route",
        "remove r1",
    ]
    assert not [path for path in server.files() if "/detector/" in path]
    assert Workload.objects.get().retired_at is not None


def test_a_canary_and_its_abort_are_commits(
    world: World, operator: Operator, server: GitServer
) -> None:
    deployment = deployed(world, operator)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=[{"weight": 10, "soak_seconds": 60, "min_requests": 100}],
    )
    world.approved(change)
    for _ in range(3):
        operator.sync()
        world.cluster.make_ready("detector-r2")
        reconcile_later(world, deployment)
    assert route_weights(server) == {"detector-r1-predictor": 90, "detector-r2-predictor": 10}

    actions.abort(actor=world.lead, rollout_id=Rollout.objects.get().pk, reason="slow")
    reconcile_later(world, deployment)

    assert route_weights(server)["detector-r1-predictor"] == 100
    assert f"{FOLDER}/detector/inferenceservice-detector-r2.yaml" in server.files()
    for _ in range(4):
        operator.sync()
        reconcile_later(world, deployment)
    assert f"{FOLDER}/detector/inferenceservice-detector-r2.yaml" not in server.files()
    assert writes(world) == []


def route_weights(server: GitServer) -> dict[str, int]:
    route = yaml.safe_load(server.text(f"{FOLDER}/detector/httproute-detector.yaml"))
    return {
        backend["name"]: backend["weight"] for backend in route["spec"]["rules"][0]["backendRefs"]
    }


def test_a_refused_push_is_recorded_once_and_retried(
    world: World, operator: Operator, server: GitServer
) -> None:
    server.push_by_hand("README.md", "ours")
    server.refuse_pushes("main is protected")
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    world.approved(change)
    reconcile_later(world, deployment_of(change))

    events = DeploymentEvent.objects.filter(kind="not committed")
    assert [event.message for event in events] == [
        f"Git: {server.url} rejected the push to main: pre-receive hook declined"
    ]
    assert GitDelivery.objects.get().last_error == events[0].message
    assert server.commits() == ["By hand"]
    assert writes(world) == []
    server.allow_pushes()
    reconcile_later(world, deployment_of(change))
    assert server.commits()[-1].startswith("vision/detector: push r1")
    assert GitDelivery.objects.get().last_error == ""


def test_an_unreachable_server_delays_only_teams_that_deliver_through_it(
    world: World, operator: Operator, draft: GitDraft
) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/fleet.git"
        git_settings.save(
            actor=world.admin, team=world.team, draft=replace(draft, repository_url=url)
        )
        change = requests.request_deploy(actor=world.member, draft=world.draft())

        world.approved(change)

        deployment = Deployment.objects.get()
        assert "does not answer" in GitDelivery.objects.get().last_error
        assert not deployment.state_reason.startswith("Not known:")
        assert deployment.observed_at == world.clock.at
        assert deployment.next_check_at == world.clock.at + timedelta(seconds=10)


def test_a_worker_that_dies_between_push_and_record_makes_no_second_commit(
    world: World, operator: Operator, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As SIGKILL: nothing after it runs."""

    real = git.commit

    def dies_after_the_push(*args: Any, **options: Any) -> GitCommit:
        real(*args, **options)
        raise Killed

    change = requests.request_deploy(actor=world.member, draft=world.draft())
    monkeypatch.setattr(git, "commit", dies_after_the_push)
    with pytest.raises(Killed):
        world.approved(change)
    assert not GitExport.objects.exists()
    monkeypatch.setattr(git, "commit", real)
    Deployment.objects.update(lease_until=None, lease_token="")

    reconcile_later(world, deployment_of(change))

    assert len(server.commits()) == 1
    assert GitExport.objects.get().commit == server.git("rev-parse", "main")


def test_switching_to_git_commits_what_already_runs(
    world: World, server: GitServer, draft: GitDraft
) -> None:
    deployment = world.serving()
    world.cluster.make_ready("detector-r1")
    reconcile_later(world, deployment)

    git_settings.save(actor=world.admin, team=world.team, draft=draft)
    reconcile_later(world, deployment)

    assert f"{FOLDER}/detector/httproute-detector.yaml" in server.files()
    assert f"{FOLDER}/detector/inferenceservice-detector-r1.yaml" in server.files()
    assert len(server.commits()) == 1


def test_leaving_git_delivers_directly_again(
    world: World, operator: Operator, draft: GitDraft, server: GitServer
) -> None:
    git_settings.save(actor=world.admin, team=world.team, draft=replace(draft, is_enabled=False))
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    world.approved(change)

    assert ("apply", "InferenceService", "detector-r1") in world.cluster.calls
    assert not server.has_main
    assert git_backend.backend_for(deployment_of(change)) is None
