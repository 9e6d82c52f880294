"""A team with its people, a ready model of two versions, a cluster with two kinds of node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import ChangeRequest, Deployment, Model, ModelVersion, Rollout
from deployments.preflight.services.preflight import DeployDraft
from deployments.registry.gateways import object_store
from deployments.rollouts.services import reconcile as rollout_reconcile
from deployments.spec.domain.serving_spec import Network, Scaling, ServingSpec
from deployments.states import Environment, VersionState
from fleet.kube.services import clients
from portal.accounts.models import Membership, Role, Team, User
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user
from tests.capabilities import offering
from tests.deployments.kept_scenes import Stage
from tests.deployments.memory_store import MemoryStore
from tests.deployments.recording_cluster import RecordingCluster

T = TypeVar("T")


@pytest.fixture
def cluster_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingCluster]:
    fake = RecordingCluster()
    connect(fake, monkeypatch)
    yield fake
    clients.forget()


def connect(cluster: RecordingCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client of a cluster is this one."""
    clients.forget()
    monkeypatch.setattr(clients, "factory", lambda _connection: cluster)


@pytest.fixture
def moving_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock(clock.now())
    moved.set(monkeypatch)
    return moved


@dataclass
class Clock:
    at: datetime

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    def set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The portal reads its time from here."""
        monkeypatch.setattr(clock, "now", lambda: self.at)


@dataclass
class World:
    """Everything a delivery test acts on."""

    team: Team
    member: User
    lead: User
    lead2: User
    viewer: User
    stranger: User
    admin: User
    version1: ModelVersion
    version2: ModelVersion
    cluster_id: int
    cluster: RecordingCluster
    clock: Clock
    store: MemoryStore
    spec: dict[str, Any] = field(default_factory=dict)
    stage: Stage | None = None

    def draft(
        self, name: str = "detector", environment: str = Environment.PRODUCTION, **changed: Any
    ) -> DeployDraft:
        if changed.get("max_replicas", 1) > changed.get("min_replicas", 1):
            changed.setdefault("scaling", Scaling(kind="hpa"))
        values = {
            "engine": "kserve-triton",
            "instance_type": "g5.xlarge",
            "cpu": "2",
            "memory": "8Gi",
            # The cluster has no known gateway for keys.
            "network": Network(access="open"),
            **changed,
        }
        spec = ServingSpec(**values)
        return DeployDraft(
            self.version1.pk, self.cluster_id, name, spec, environment=Environment(environment)
        )

    def work(self, rounds: int = 8) -> None:
        """Run the workers' sweeps until nothing is due."""
        for _ in range(rounds):
            done = apply_changes.sweep() + reconcile.sweep() + rollout_reconcile.sweep()
            if done == 0:
                return

    def reconcile_now(self, deployment: Deployment) -> Deployment:
        """Reconcile the deployment and its rollout now, as after a hint."""
        Deployment.objects.filter(pk=deployment.pk).update(next_check_at=clock.now())
        Rollout.objects.filter(deployment=deployment).exclude(
            phase__in=["completed", "aborted"]
        ).update(next_check_at=clock.now())
        self.work()
        deployment.refresh_from_db()
        return deployment

    def approved(self, change: ChangeRequest) -> ChangeRequest:
        decisions.approve(actor=self.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
        self.work()
        change.refresh_from_db()
        return change

    def serving(self, **changed: Any) -> Deployment:
        """A deployment that was requested, approved, applied and is ready."""
        return self.play(f"serving {changed}", lambda: self._serve(**changed))

    def play(self, key: str, make: Callable[[], T]) -> T:
        """What `make` makes, which a test before this one may have made of the same world."""
        return make() if self.stage is None else self.stage.play(key, make)

    def _serve(self, **changed: Any) -> Deployment:
        change = requests.request_deploy(actor=self.member, draft=self.draft(**changed))
        self.approved(change)
        deployment = deployment_of(change)
        self.cluster.make_ready(f"{deployment.name}-r1")
        return self.reconcile_now(deployment)


@pytest.fixture
def world(
    db: None,
    cluster_calls: RecordingCluster,
    moving_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> World:
    stage = Stage(cluster_calls, moving_clock, monkeypatch, request)
    made = stage.make_world(lambda: make_world(cluster_calls, moving_clock))
    made.stage = stage
    monkeypatch.setattr(object_store, "store", lambda: made.store)
    return made


def make_world(cluster_calls: RecordingCluster, moving_clock: Clock) -> World:
    from fleet.models import Cluster, InstancePrice, Node

    team = make_team(slug="vision", quota_gpus=8, monthly_budget_amount=Decimal(5000))
    people: dict[str, Any] = {
        name: make_user(username=name)
        for name in ("member", "lead", "lead2", "viewer", "stranger", "admin")
    }
    User.objects.filter(pk=people["admin"].pk).update(is_platform_admin=True)
    people["admin"].refresh_from_db()
    roles = {"member": Role.MEMBER, "lead": Role.LEAD, "lead2": Role.LEAD, "viewer": Role.VIEWER}
    for name, role in roles.items():
        make_membership(user=people[name], team=team, role=role)
    make_membership(user=people["stranger"], team=make_team(slug="nlp"), role=Role.LEAD)
    assert Membership.objects.count() == 5
    at = clock.now()
    cluster = Cluster.objects.create(
        name="eks-test",
        kind="eks",
        gateway_url="http://gateway.example",
        capabilities=offering("kserve-triton", "triton"),
        created_at=at,
    )
    for number in range(4):
        Node.objects.create(
            cluster=cluster,
            name=f"node-{number}",
            uid=f"node-{number}",
            instance_type="g5.xlarge",
            region="us-east-1",
            gpu_product="NVIDIA-A10G",
            gpu_count=1,
            gpu_memory_mib=24576,
            allocatable={"nvidia.com/gpu": "1", "cpu": "3920m", "memory": "14162Mi"},
            labels={
                "node.kubernetes.io/instance-type": "g5.xlarge",
                "nvidia.com/gpu.product": "NVIDIA-A10G",
                "nvidia.com/gpu.count": "1",
                "nvidia.com/gpu.memory": "24576",
            },
            is_ready=True,
            first_seen_at=at,
            last_seen_at=at,
        )
    InstancePrice.objects.create(
        instance_type="g5.xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("1.006"),
        gpu_name="a10g",
        gpu_count=1,
        gpu_memory_mib=24576,
        vcpu=4,
        memory_gib=16,
        allocatable_cpu="3920m",
        allocatable_memory="14162Mi",
        source="catalogue",
        valid_from=at.date(),
    )
    namespace = {"metadata": {"name": "vision"}}
    cluster_calls.objects["Namespace", "", "vision"] = namespace
    cluster_calls.objects["Namespace", "", "vision"]["metadata"]["generation"] = 1
    versions = make_versions(team, people["member"])
    memory_store = MemoryStore()
    for version in versions:
        memory_store.lay_out(version)
    return World(
        team=team,
        **people,
        version1=versions[0],
        version2=versions[1],
        cluster_id=cluster.pk,
        cluster=cluster_calls,
        clock=moving_clock,
        store=memory_store,
    )


def make_versions(team: Team, user: User, name: str = "detector") -> list[ModelVersion]:
    at = clock.now()
    model = Model.objects.create(
        team=team, name=name, created_by=user, created_at=at, changed_at=at
    )
    return [
        ModelVersion.objects.create(
            model=model,
            number=number,
            state=VersionState.READY,
            filename="detector.onnx",
            declared_size_bytes=10,
            size_bytes=10,
            bucket="slipway-models",
            upload_prefix=f"uploads/{number}/",
            sha256=f"{number}" * 64,
            repository_prefix=f"repositories/vision/{name}/{number}/{'ab' * 6}/",
            metadata={"metrics": {"accuracy": 0.9 + number / 100}},
            created_by=user,
            created_at=at,
        )
        for number in (1, 2)
    ]
