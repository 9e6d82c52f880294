"""One node of four GPUs, two teams, and people who open its pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.test import Client

from fleet.models import (
    Cluster,
    GpuLease,
    InstancePrice,
    Node,
    Workload,
    WorkloadMinute,
)
from portal.accounts.models import Membership, Role, Team, User

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.fixture
def still_clock() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def vision(db: None) -> Team:
    return Team.objects.create(
        slug="vision", name="Vision", created_at=NOW, monthly_budget_amount=Decimal(1000)
    )


@pytest.fixture
def nlp(db: None) -> Team:
    return Team.objects.create(slug="nlp", name="Language", created_at=NOW)


@pytest.fixture
def member(vision: Team) -> Client:
    user = User.objects.create_user("member")
    Membership.objects.create(user=user, team=vision, role=Role.MEMBER)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))
    return client


@pytest.fixture
def node(db: None) -> Node:
    cluster = Cluster.objects.create(
        name="local",
        kind="local",
        gateway_url="http://127.0.0.1:1",
        created_at=NOW,
        last_seen_at=NOW,
    )
    InstancePrice.objects.create(
        instance_type="g5.12xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("5.672"),
        gpu_name="A10G",
        gpu_count=4,
        gpu_memory_mib=23028,
        vcpu=48,
        memory_gib=192,
        source="list",
        valid_from=NOW.date(),
    )
    return Node.objects.create(
        cluster=cluster,
        name="local-1",
        uid="n1",
        instance_type="g5.12xlarge",
        region="us-east-1",
        gpu_product="A10G",
        gpu_count=4,
        is_ready=True,
        is_simulated=True,
        first_seen_at=NOW - timedelta(minutes=10),
        last_seen_at=NOW,
    )


def occupy(node: Node, team: Team, name: str, share_ppm: int, busy: float | None) -> Workload:
    workload = Workload.objects.create(
        cluster=node.cluster,
        team=team,
        namespace=team.slug,
        name=f"{name}-r1",
        labels={"deployment": name, "model": name, "revision": "1"},
        created_at=NOW,
    )
    GpuLease.objects.create(
        cluster=node.cluster,
        node=node,
        workload=workload,
        pod_uid=name,
        pod_name=f"{name}-pod",
        namespace=team.slug,
        team_slug=team.slug,
        share_ppm=share_ppm,
        started_at=NOW - timedelta(minutes=5),
        changed_at=NOW,
    )
    if busy is not None:
        WorkloadMinute.objects.create(
            workload=workload,
            start=NOW - timedelta(minutes=1),
            observed_ms=60_000,
            gpu_busy_ms=int(60_000 * busy),
            gpu_busy_source="triton",
        )
    return workload
