"""A node with two pods of a deployment, and the people who act on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.actions.services import advance, decisions
from fleet.clusters.domain.node_groups import GroupSize, NodeGroup
from fleet.clusters.services import node_groups
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.models import Cluster, FleetAction, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from portal.accounts.models import Role, Team, User
from portal.core import clock
from tests.accounts import make_membership, make_user
from tests.fleet import objects
from tests.fleet.fakes import FakeKube

BEFORE = GroupSize(1, 4, 2)


class Hands:
    """What workers and people do, with the clock in hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = datetime.fromisoformat("2026-11-20T11:00:00+00:00")
        monkeypatch.setattr(clock, "now", lambda: self.at)

    def sweep(self, times: int = 1, *, seconds: float = 30) -> None:
        """Passes of the worker, with time in between."""
        for _ in range(times):
            self.at += timedelta(seconds=seconds)
            advance.sweep()

    def approve(self, action: FleetAction, admin: User) -> None:
        decisions.approve(actor=admin, action_id=action.pk, evidence_hash=action.evidence_hash)


class FakeGroups:
    """AWS at the gateway: an update lasts until `finish`."""

    def __init__(self) -> None:
        self.group = NodeGroup("gpu", "ACTIVE", BEFORE, "on-demand", ("g5.xlarge", "g6.xlarge"))
        self.tokens: list[str] = []
        self.target = BEFORE
        self.broken: ClusterError | None = None

    def list_names(self) -> list[str]:
        return ["gpu"]

    def describe(self, group: str) -> NodeGroup:
        if self.broken:
            raise self.broken
        if group != self.group.name:
            raise ObjectNotFound(f"No node group found for name: {group}.")
        return self.group

    def scale(self, group: str, size: GroupSize, *, token: str) -> None:
        self.tokens.append(token)
        self.target = size
        self.group = replace(self.group, status="UPDATING")

    def finish(self) -> None:
        self.group = replace(self.group, status="ACTIVE", size=self.target)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeGroups:
    fake = FakeGroups()
    monkeypatch.setattr(node_groups, "factory", lambda *_: fake)
    return fake


@pytest.fixture
def eks_cluster(cluster: Cluster, catalogue: None) -> Cluster:
    Cluster.objects.update(kind="eks", eks_name="prod", region="us-east-1")
    cluster.refresh_from_db()
    return cluster


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    return Hands(monkeypatch)


def owned(name: str, **fields: Any) -> dict[str, Any]:
    """A pod that a ReplicaSet would start again."""
    pod = objects.pod(name, **fields)
    pod["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "name": "detector-r1", "uid": "u", "controller": True}
    ]
    return pod


@pytest.fixture
def node(cluster: Cluster, detector: int, catalogue: None, kube: FakeKube) -> Node:
    """Two pods on node-1; node-2 of the same type has one free GPU."""
    nodes = [objects.node(gpus=2), objects.node("node-2")]
    pods = [owned("detector-r1-a"), owned("detector-r1-b")]
    kube.put(*nodes, *pods)
    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing(nodes, 50),
        pods=FullListing(pods, 50),
        at=objects.START,
    )
    return Node.objects.get(name="node-1")


@pytest.fixture
def admin(db: None) -> User:
    return make_user("admin", is_platform_admin=True)


@pytest.fixture
def lead(vision: Team) -> User:
    return make_membership(user=make_user("lead"), team=vision, role=Role.LEAD).user
