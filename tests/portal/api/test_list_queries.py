"""Lists need as many queries for many rows as for few."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from deployments.models import Alias, DeploymentEvent, Revision
from fleet.models import Cluster, GpuLease, InstancePrice, Node, Pod, Workload
from portal.accounts import tokens
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user
from tests.portal import api_document
from tests.portal.api.full_world import FullWorld

pytestmark = pytest.mark.django_db
LISTS = (
    "me",
    "me/tokens",
    "teams",
    "teams/{slug}/members",
    "models/{team}/{name}/aliases",
    "deployments/{deployment_id}/revisions",
    "deployments/{deployment_id}/events",
    "clusters",
    "clusters/{cluster_id}/shares",
    "nodes",
    "pods",
    "prices",
    "usage",
    "costs",
    "costs/series",
)
# What is grouped by team or by GPU type stays as long as it was.
GROUPED = {"clusters/{cluster_id}/shares", "usage", "costs", "costs/series"}


def copy_of(row: models.Model, **changed: Any) -> None:
    copy = type(row)._base_manager.get(pk=row.pk)
    copy.pk = None
    for field, value in changed.items():
        setattr(copy, field, value)
    copy.save(force_insert=True)


def add_one_of_each(full: FullWorld, number: int) -> None:
    world, deployment = full.world, full.deployment
    make_membership(user=world.member, team=make_team())
    make_membership(user=make_user(), team=world.team)
    tokens.create(actor=world.member, name="another", days=1)
    copy_of(Alias.objects.get(name="champion"), name=f"alias-{number}")
    copy_of(DeploymentEvent.objects.filter(deployment=deployment)[0])
    copy_of(Revision.objects.get(deployment=deployment, number=1), number=100 + number)
    copy_of(Cluster.objects.get(pk=world.cluster_id), name=f"cluster-{number}")
    price = InstancePrice.objects.get(region="us-east-1")
    copy_of(price, region=f"eu-{number}")
    add_pod(full, number)


def add_pod(full: FullWorld, number: int) -> None:
    """On a node of its own, which it fills."""
    at, name = clock.now(), f"added-{number}"
    node = Node.objects.get(cluster_id=full.world.cluster_id, uid="node-0")
    copy_of(node, uid=name, name=name)
    workload = Workload.objects.get(name="detector-r1")
    Pod.objects.create(
        cluster_id=full.world.cluster_id,
        namespace="vision",
        name=name,
        uid=name,
        workload=workload,
        node_name=name,
        phase="Running",
        created_at=at,
    )
    GpuLease.objects.create(
        cluster_id=full.world.cluster_id,
        node=Node.objects.get(uid=name),
        workload=workload,
        pod_uid=name,
        pod_name=name,
        namespace="vision",
        team_slug="vision",
        share_ppm=1_000_000,
        started_at=at,
        changed_at=at,
    )


def measure(full: FullWorld, client: APIClient) -> tuple[dict[str, int], dict[str, int]]:
    """By list: how many queries it took, and how many rows came."""
    queries, lengths = {}, {}
    for path in LISTS:
        most = {"limit": 100} if "limit" in api_document.query_names(f"get {path}") else {}
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(f"/api/v1/{path.format(**full.names)}", most)
        assert answer.status_code == 200, answer.content
        queries[path] = len(captured)
        lengths[path] = rows_of(answer.data)
    return queries, lengths


def rows_of(data: Any) -> int:
    if isinstance(data, dict):
        data = next(data[key] for key in ("results", "teams", "rows") if key in data)
    return len(data)


def test_more_rows_need_no_more_queries(full_world: FullWorld) -> None:
    client = APIClient()
    client.force_authenticate(full_world.world.member)
    for number in range(2):
        add_one_of_each(full_world, number)
    few, short = measure(full_world, client)

    for number in range(2, 8):
        add_one_of_each(full_world, number)
    many, long = measure(full_world, client)

    assert {path for path in LISTS if long[path] != short[path] + 6} == GROUPED
    assert many == few
