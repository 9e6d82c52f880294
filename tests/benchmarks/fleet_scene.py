"""A large portal in PostgreSQL, written in bulk: teams, versions, deployments, nodes and a ledger.

One team has a tenth of everything. The ledger is split as metering splits it: each deployment holds a GPU of
a node in some hours of each day, and the rest of the node is idle.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.benchmarks import fleet_scene_history

if TYPE_CHECKING:
    from fleet.models import Cluster
    from portal.accounts.models import Team, User


QUOTA: dict[str, Any] = {"quota_gpus": 4_000, "monthly_budget_amount": 100_000}


@dataclass(frozen=True, slots=True)
class Size:
    """`hours` of each day of the ledger have rows, the last ones; so do all of the last day."""

    teams: int = 200
    versions: int = 20_000
    deployments: int = 5_000
    nodes: int = 2_000
    gpus_per_node: int = 8
    days: int = 90
    hours: int = 4


@dataclass(frozen=True, slots=True)
class Portal:
    admin: User
    lead: User
    cluster: Cluster
    big_team: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """What is there before: `team` becomes the one with a tenth, and everything runs on `cluster`."""

    admin: User
    lead: User
    team: Team
    cluster: Cluster


def build(size: Size, start: Start | None = None) -> Portal:
    """`now` is the time of the data: nothing is sealed for later hours."""
    from fleet.prices.services import catalogue
    from portal.accounts.policy import SYSTEM

    now = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
    catalogue.load_catalogue(actor=SYSTEM)
    start = start or _start()
    admin, lead, cluster = start.admin, start.lead, start.cluster
    cluster.region = "us-east-1"
    cluster.created_at = now.replace(hour=0, minute=0) - timedelta(days=size.days - 1)
    cluster.last_seen_at = now
    cluster.save()
    teams = [start.team, *_teams(size, now)]
    _nodes(size, cluster, now)
    _registry(size, teams, lead, now)
    _deployments(size, cluster, teams, lead, now)
    fleet_scene_history.leases(size, cluster, now)
    fleet_scene_history.ledger(size, cluster, now)
    fleet_scene_history.readings(size, now)
    fleet_scene_history.sql("ANALYZE")
    # A web process has no such past, which each full collection would walk through.
    gc.collect()
    gc.freeze()
    return Portal(admin, lead, cluster, start.team.slug, now)


def _start() -> Start:
    from fleet.models import Cluster
    from portal.core import clock
    from tests.accounts import make_membership, make_team, make_user
    from tests.capabilities import offering

    lead, team = make_user(username="lead"), make_team(slug="team-0", **QUOTA)
    make_membership(user=lead, team=team, role="lead")
    cluster = Cluster.objects.create(
        name="large",
        kind="kubeconfig",
        kubeconfig_path="/nowhere",
        gateway_url="http://gateway.example",
        capabilities=offering("kserve-triton", "triton"),
        created_at=clock.now(),
    )
    return Start(make_user(username="admin", is_platform_admin=True), lead, team, cluster)


def _teams(size: Size, now: datetime) -> list[Team]:
    from portal.accounts.models import Team

    return Team.objects.bulk_create(
        Team(slug=f"team-{n}", name=f"Team {n}", created_at=now, **QUOTA)
        for n in range(1, size.teams)
    )


def team_of(number: int, teams: int) -> int:
    """The first team has a tenth."""
    return 0 if number % 10 == 0 else 1 + number % (teams - 1)


def _nodes(size: Size, cluster: Cluster, now: datetime) -> None:
    from fleet.models import Node

    Node.objects.bulk_create(
        (
            Node(
                cluster=cluster,
                uid=f"uid-{n}",
                name=f"ip-10-0-{n // 250}-{n % 250}.ec2.internal",
                instance_type=("g5.48xlarge", "p4d.24xlarge", "g4dn.metal")[n % 3],
                capacity_type="spot" if n % 4 == 0 else "on-demand",
                region="us-east-1",
                zone=f"us-east-1{'abc'[n % 3]}",
                gpu_product=("NVIDIA-A10G", "NVIDIA-A100-SXM4-40GB", "Tesla-T4")[n % 3],
                gpu_count=size.gpus_per_node,
                gpu_memory_mib=24_576,
                is_ready=n % 97 != 0,
                first_seen_at=now - timedelta(days=size.days),
                last_seen_at=now,
            )
            for n in range(size.nodes)
        ),
        batch_size=1000,
    )


def _registry(size: Size, teams: list[Team], lead: User, now: datetime) -> None:
    from deployments.models import Model, ModelVersion

    each = 20
    models = Model.objects.bulk_create(
        (
            Model(
                team=teams[team_of(n, size.teams)],
                name=f"model-{n}",
                description="Finds defects on photos",
                task="object detection",
                created_by=lead,
                created_at=now,
                changed_at=now,
            )
            for n in range(size.versions // each)
        ),
        batch_size=1000,
    )
    ModelVersion.objects.bulk_create(
        (
            ModelVersion(
                model=model,
                number=number,
                state="ready",
                filename="model.onnx",
                declared_size_bytes=10,
                size_bytes=10,
                bucket="slipway-models",
                upload_prefix=f"uploads/{model.pk}/{number}/",
                sha256=f"{model.pk * 100 + number:064x}",
                repository_prefix=f"repositories/{model.pk}/{number}/{'ab' * 6}/",
                metadata={"metrics": {"map": 0.5}, "labels": {"line": f"l{number}"}},
                created_by=lead,
                created_at=now - timedelta(days=number),
                ready_at=now,
            )
            for model in models
            for number in range(1, each + 1)
        ),
        batch_size=1000,
    )


def _deployments(
    size: Size, cluster: Cluster, teams: list[Team], lead: User, now: datetime
) -> None:
    from deployments.models import Deployment, ModelVersion, Revision
    from deployments.spec.domain.serving_spec import Network, ServingSpec
    from fleet.models import Workload

    versions: dict[int, list[Any]] = {}
    for version in ModelVersion.objects.filter(number=1).select_related("model"):
        versions.setdefault(version.model.team_id, []).append(version)
    deployments = Deployment.objects.bulk_create(
        (
            Deployment(
                team=teams[team_of(n, size.teams)],
                cluster=cluster,
                name=f"d-{n}",
                namespace=teams[team_of(n, size.teams)].slug,
                created_by=lead,
                created_at=now - timedelta(days=60),
            )
            for n in range(size.deployments)
        ),
        batch_size=1000,
    )
    spec = ServingSpec(
        engine="kserve-triton", instance_type="g5.48xlarge", network=Network(access="open")
    ).to_json()
    any_version = next(iter(versions.values()))
    served = [
        (deployment, own[number % len(own)])
        for number, deployment in enumerate(deployments)
        for own in (versions.get(deployment.team_id, any_version),)
    ]
    revisions = Revision.objects.bulk_create(
        (
            Revision(
                deployment=deployment,
                number=1,
                version=version,
                spec=spec,
                created_by=lead,
                created_at=deployment.created_at,
            )
            for deployment, version in served
        ),
        batch_size=1000,
    )
    for deployment, revision in zip(deployments, revisions, strict=True):
        deployment.stable_revision = revision
        deployment.state = "ready"
    Deployment.objects.bulk_update(deployments, ["stable_revision", "state"], batch_size=500)
    Workload.objects.bulk_create(
        (
            Workload(
                cluster=cluster,
                team=deployment.team,
                namespace=deployment.namespace,
                name=f"{deployment.name}-r1",
                labels={
                    "deployment": deployment.name,
                    "revision": "1",
                    "model": f"{deployment.namespace}/{version.model.name}",
                },
                created_at=deployment.created_at,
            )
            for deployment, version in served
        ),
        batch_size=1000,
    )
