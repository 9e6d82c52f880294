"""A large portal in PostgreSQL, written in bulk: teams, versions, deployments, nodes and a ledger.

One team has a tenth of everything. The ledger is split as metering splits it: each deployment holds a GPU of
a node in some hours of each day, and the rest of the node is idle.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.models import Cluster
    from portal.accounts.models import User

PRICE = "5.672"


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


def build(size: Size) -> Portal:
    """`now` is the time of the data: nothing is sealed for later hours."""
    from fleet.models import Cluster
    from fleet.prices.services import catalogue
    from portal.accounts.policy import SYSTEM
    from tests.accounts import make_membership, make_user
    from tests.capabilities import offering

    now = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
    catalogue.load_catalogue(actor=SYSTEM)
    admin = make_user(username="admin", is_platform_admin=True)
    lead = make_user(username="lead")
    cluster = Cluster.objects.create(
        name="large",
        kind="kubeconfig",
        kubeconfig_path="/nowhere",
        gateway_url="http://gateway.example",
        capabilities=offering("kserve-triton", "triton"),
        region="us-east-1",
        created_at=now.replace(hour=0, minute=0) - timedelta(days=size.days - 1),
        last_seen_at=now,
    )
    teams = _teams(size, now)
    make_membership(user=lead, team=teams[0], role="lead")
    _nodes(size, cluster, now)
    _registry(size, teams, lead, now)
    _deployments(size, cluster, lead, now)
    _leases(size, cluster, now)
    _ledger(size, cluster, now)
    _readings(size, now)
    _sql("ANALYZE")
    # A web process has no such past, which each full collection would walk through.
    gc.collect()
    gc.freeze()
    return Portal(admin, lead, cluster, teams[0].slug, now)


def _teams(size: Size, now: datetime) -> list[Any]:
    from portal.accounts.models import Team

    return Team.objects.bulk_create(
        Team(
            slug=f"team-{n}",
            name=f"Team {n}",
            quota_gpus=4_000,
            monthly_budget_amount=100_000,
            created_at=now,
        )
        for n in range(size.teams)
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


def _registry(size: Size, teams: list[Any], lead: User, now: datetime) -> None:
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


def _deployments(size: Size, cluster: Cluster, lead: User, now: datetime) -> None:
    from deployments.models import Deployment, ModelVersion, Revision
    from deployments.spec.domain.pod_settings import OPEN
    from deployments.spec.domain.serving_spec import Network, ServingSpec
    from fleet.models import Workload
    from portal.accounts.models import Team

    versions: dict[int, list[Any]] = {}
    for version in ModelVersion.objects.filter(number=1).select_related("model"):
        versions.setdefault(version.model.team_id, []).append(version)
    teams = {team.slug: team for team in Team.objects.all()}
    deployments = Deployment.objects.bulk_create(
        (
            Deployment(
                team=teams[f"team-{team_of(n, size.teams)}"],
                cluster=cluster,
                name=f"d-{n}",
                namespace=f"team-{team_of(n, size.teams)}",
                created_by=lead,
                created_at=now - timedelta(days=60),
            )
            for n in range(size.deployments)
        ),
        batch_size=1000,
    )
    spec = ServingSpec(
        engine="kserve-triton", instance_type="g5.48xlarge", network=Network(access=OPEN)
    ).to_json()
    any_version = next(iter(versions.values()))
    revisions = Revision.objects.bulk_create(
        (
            Revision(
                deployment=deployment,
                number=1,
                version=versions.get(deployment.team_id, any_version)[0],
                spec=spec,
                created_by=lead,
                created_at=deployment.created_at,
            )
            for deployment in deployments
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
                    "model": f"{deployment.namespace}/{versions.get(deployment.team_id, any_version)[0].model.name}",
                },
                created_at=deployment.created_at,
            )
            for deployment in deployments
        ),
        batch_size=1000,
    )


def _leases(size: Size, cluster: Cluster, now: datetime) -> None:
    """Two pods of each deployment, each with one GPU; the last nodes stay free."""
    _sql(
        """
        INSERT INTO fleet_gpulease (cluster_id, node_id, workload_id, pod_uid, pod_name, namespace,
            team_slug, share_ppm, started_at, ended_at, changed_at)
        SELECT %(cluster)s, n.id, w.id, 'pod-' || w.id || '-' || pod, w.name || '-' || pod,
            w.namespace, w.namespace, 1000000, %(at)s, NULL, %(at)s
        FROM (SELECT *, row_number() OVER (ORDER BY id) AS place FROM fleet_workload) w
        CROSS JOIN generate_series(0, 1) pod
        JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place FROM fleet_node) n
            ON n.place = 1 + (2 * w.place + pod) / %(gpus)s %% %(nodes)s
        """,
        cluster=cluster.pk,
        at=now - timedelta(days=1),
        gpus=size.gpus_per_node,
        nodes=size.nodes,
    )


def _ledger(size: Size, cluster: Cluster, now: datetime) -> None:
    start = now.replace(hour=0, minute=0) - timedelta(days=size.days - 1)
    end = now.replace(minute=0)
    hours = {"start": start, "end": end, "hours": size.hours, "day": end - timedelta(days=1)}
    span = """
        SELECT hour FROM generate_series(%(start)s::timestamptz, %(end)s - interval '1 hour',
            interval '1 hour') hour
        WHERE hour >= %(day)s OR extract(hour FROM hour AT TIME ZONE 'UTC') < %(hours)s
    """
    _sql(
        f"""
        INSERT INTO fleet_sealedhour (cluster_id, hour, sealed_at)
        SELECT %(cluster)s, hour, hour + interval '1 hour' FROM generate_series(%(start)s::timestamptz,
            %(end)s - interval '1 hour', interval '1 hour') hour;
        INSERT INTO fleet_ledgerrow (hour, cluster_name, node_uid, node_name, instance_type,
            capacity_type, kind, team_slug, namespace, workload_name, workload_labels,
            gpu_milliseconds, cost_amount, usd_per_hour_amount, price_source, is_demo, sealed_at)
        SELECT hour, 'large', 'uid-' || n.place, 'node-' || n.place, 'g5.48xlarge', 'on-demand',
            'allocated', w.namespace, w.namespace, w.name, w.labels, 7200000, 1.418, {PRICE}, 'list',
            false, hour + interval '1 hour'
        FROM ({span}) hours
        CROSS JOIN (SELECT *, row_number() OVER (ORDER BY id) AS place FROM fleet_workload) w
        JOIN (SELECT n AS place FROM generate_series(0, %(nodes)s - 1) n) n
            ON n.place = (2 * w.place) / 8 %% %(nodes)s
        ORDER BY hour;
        INSERT INTO fleet_ledgerrow (hour, cluster_name, node_uid, node_name, instance_type,
            capacity_type, kind, team_slug, namespace, workload_name, workload_labels,
            gpu_milliseconds, cost_amount, usd_per_hour_amount, price_source, is_demo, sealed_at)
        SELECT hour, 'large', 'uid-' || n, 'node-' || n, 'g5.48xlarge', 'on-demand', 'idle', '', '', '',
            '{{}}', 3600000, 0.709, {PRICE}, 'list', false, hour + interval '1 hour'
        FROM ({span}) hours CROSS JOIN generate_series(0, %(nodes)s / 10) n ORDER BY hour
        """,
        cluster=cluster.pk,
        nodes=size.nodes,
        **hours,
    )


def _readings(size: Size, now: datetime) -> None:
    counters = (
        "request_success, request_failure, inference_count, execution_count, request_duration_us, "
        "queue_duration_us, compute_input_us, compute_infer_us, compute_output_us, prompt_tokens, "
        "generation_tokens, first_tokens, first_token_us, later_tokens, later_token_us, preemptions, "
        "observed_ms, gpu_busy_ms, gpu_busy_source"
    )
    values = (
        "1000, 1, 1000, 500, 20000000, 1000000, 1000000, 17000000, 1000000, 0, 0, 0, 0, 0, 0, 0, "
    )
    start = now.replace(hour=0, minute=0) - timedelta(days=size.days - 1)
    _sql(
        f"""
        INSERT INTO fleet_workloadhour (workload_id, start, is_demo, {counters})
        SELECT w.id, hour, false, {values} 3600000, 17000, 'triton'
        FROM generate_series(%(start)s::timestamptz, %(end)s - interval '1 hour', interval '1 hour')
            hour CROSS JOIN fleet_workload w
        WHERE hour >= %(day)s OR extract(hour FROM hour AT TIME ZONE 'UTC') < 1
        ORDER BY hour;
        INSERT INTO fleet_workloadminute (workload_id, start, {counters})
        SELECT w.id, minute, {values} 60000, 17000, 'triton'
        FROM generate_series(%(now)s::timestamptz - interval '10 minutes', %(now)s, interval '1 minute')
            minute CROSS JOIN fleet_workload w
        """,
        start=start,
        end=now.replace(minute=0),
        day=now.replace(minute=0) - timedelta(days=1),
        now=now,
    )
    _sum_up_days()


def _sum_up_days() -> None:
    """As fleet.telemetry.services.days does day by day."""
    sums = (
        "sum(request_success), sum(request_failure), sum(inference_count), {tokens}, "
        "sum(observed_ms), sum(gpu_busy_ms), max(gpu_busy_source)"
    )
    names = (
        "request_success, request_failure, inference_count, tokens, observed_ms, gpu_busy_ms, "
        "gpu_busy_source"
    )
    of_hours = sums.format(tokens="sum(prompt_tokens + generation_tokens)")
    of_days = sums.format(tokens="sum(tokens)")
    _sql(
        f"""
        INSERT INTO fleet_workloadday (day, workload_id, {names})
        SELECT (start AT TIME ZONE 'UTC')::date, workload_id, {of_hours} FROM fleet_workloadhour
        WHERE (start AT TIME ZONE 'UTC')::date < (now() AT TIME ZONE 'UTC')::date GROUP BY 1, 2;
        INSERT INTO fleet_teamusageday (day, team_slug, cluster_name, {names})
        SELECT d.day, w.namespace, 'large', {of_days}
        FROM fleet_workloadday d JOIN fleet_workload w ON w.id = d.workload_id GROUP BY 1, 2;
        INSERT INTO fleet_summedday (day) SELECT DISTINCT day FROM fleet_workloadday
        """
    )


def _sql(statements: str, **values: Any) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(statement, values or None)
