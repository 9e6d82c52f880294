"""Scaling managed node groups of EKS by request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import boto3
import pytest
from django.test import Client
from moto import mock_aws

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import requests
from fleet.clusters.domain.node_groups import GroupSize
from fleet.clusters.gateways.node_groups import NodeGroups
from fleet.kube.domain.errors import ObjectNotFound, Unreachable
from fleet.models import Cluster, FleetAction
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, Unavailable
from tests.accounts import make_user
from tests.fleet.actions.conftest import BEFORE, FakeGroups, Hands
from tests.page import page

pytestmark = pytest.mark.django_db
WANTED = GroupSize(0, 6, 5)


def request_size(lead: User, cluster: Cluster, size: GroupSize = WANTED) -> FleetAction:
    return requests.request_group_scale(actor=lead, cluster_id=cluster.pk, name="gpu", size=size)


def test_a_size_is_sent_after_the_approval_and_awaited(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Hands
) -> None:
    action = request_size(lead, eks_cluster)
    hands.sweep(1)
    before = list(aws.tokens)
    hands.approve(action, admin)
    hands.sweep(4)
    action.refresh_from_db()
    waiting = (action.state, action.state_reason)
    aws.finish()
    hands.sweep(1)
    action.refresh_from_db()
    evidence = Evidence.from_json(action.evidence)

    assert before == []
    assert waiting == ("applying", "AWS is updating the node group.")
    assert (action.state, aws.target, len(aws.tokens)) == ("done", WANTED, 1)
    assert [(row.label, row.before, row.after) for row in evidence.changes] == [
        ("Desired nodes", "2", "5"),
        ("Min nodes", "1", "0"),
        ("Max nodes", "4", "6"),
    ]
    assert (evidence.usd_per_hour_before, evidence.usd_per_hour_after) == (
        Decimal("2.012000"),
        Decimal("5.030000"),
    )
    assert evidence.usd_per_month_change == Decimal("2203.140000")


def test_a_worker_that_dies_after_the_call_repeats_it_with_the_same_token(
    eks_cluster: Cluster,
    lead: User,
    admin: User,
    aws: FakeGroups,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fleet.actions.services import advance

    action = request_size(lead, eks_cluster)
    hands.approve(action, admin)
    hands.sweep(1)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(advance, "_record", die)
        with pytest.raises(KeyboardInterrupt):
            hands.sweep(1)
    # AWS did not show the update yet.
    aws.group = replace(aws.group, status="ACTIVE")
    hands.sweep(1, seconds=400)
    aws.finish()
    hands.sweep(1)
    action.refresh_from_db()

    assert action.state == "done"
    assert len(aws.tokens) == 2
    assert len(set(aws.tokens)) == 1


def test_what_somebody_scaled_after_the_approval_is_not_touched(
    eks_cluster: Cluster, lead: User, admin: User, aws: FakeGroups, hands: Hands
) -> None:
    action = request_size(lead, eks_cluster)
    hands.approve(action, admin)
    aws.group = replace(aws.group, size=GroupSize(1, 4, 3))
    hands.sweep(3)
    action.refresh_from_db()

    assert (action.state, aws.tokens) == ("failed", [])


def test_it_says_what_aws_says_and_who_chooses_the_nodes_that_end(
    eks_cluster: Cluster, lead: User, aws: FakeGroups, hands: Hands
) -> None:
    aws.group = replace(
        aws.group, status="DEGRADED", issues=("AsgInstanceLaunchFailures: no capacity",)
    )

    action = request_size(lead, eks_cluster, GroupSize(1, 4, 1))

    assert Evidence.from_json(action.evidence).warnings == (
        "AWS reports AsgInstanceLaunchFailures: no capacity",
        "The node group is degraded.",
        "AWS chooses which nodes end and drains them. To choose them yourself, drain them first.",
        "It may start several instance types. The cost assumes the most expensive one.",
    )


@pytest.mark.parametrize(
    "size", [(0, 0, 0), (-1, 2, 1), (3, 2, 2), (1, 2, 3), (2, 4, 1), (0, 451, 1)]
)
def test_bounds(
    eks_cluster: Cluster,
    lead: User,
    aws: FakeGroups,
    size: tuple[int, int, int],
) -> None:
    with pytest.raises(Invalid):
        request_size(lead, eks_cluster, GroupSize(*size))
    assert FleetAction.objects.count() == 0


def test_refusals_change_nothing(
    eks_cluster: Cluster, lead: User, aws: FakeGroups, hands: Hands
) -> None:
    def refused(error: type[DomainError], size: GroupSize = WANTED, **more: Any) -> None:
        call = {"actor": lead, "cluster_id": eks_cluster.pk, "name": "gpu", "size": size, **more}
        with pytest.raises(error):
            requests.request_group_scale(**call)
        assert (FleetAction.objects.count(), aws.tokens) == (0, [])

    refused(Forbidden, actor=make_user())
    refused(Conflict, BEFORE)
    refused(Conflict, name="other")
    refused(Conflict, name="gpu/../x")
    aws.group = replace(aws.group, status="UPDATING")
    refused(Conflict)
    aws.broken = Unreachable("eks:DescribeNodegroup gpu failed")
    refused(Unavailable)
    aws.broken = None
    Cluster.objects.update(kind="kubeconfig")
    refused(Conflict)


def test_from_the_list_to_the_request(
    eks_cluster: Cluster, lead: User, aws: FakeGroups, client: Client
) -> None:
    client.force_login(lead)
    here = f"/fleet/clusters/{eks_cluster.pk}/node-groups"
    listed = page(client.get(here))
    sent = client.post(
        listed.link("gpu"), {"desired_size": "5", "min_size": "0", "max_size": "6"}, follow=True
    )
    in_api = client.get(f"/api/v1/clusters/{eks_cluster.pk}/node-groups").json()
    aws.broken = Unreachable("eks:ListNodegroups of prod failed")
    away = page(client.get(here))

    assert "g5.xlarge, g6.xlarge" in listed.text
    assert "Scale node group gpu" in page(sent).text
    assert [(row["name"], row["desired_size"]) for row in in_api] == [("gpu", 2)]
    assert "Not known: eks:ListNodegroups of prod failed" in away.text


@pytest.fixture
def eks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with mock_aws():
        client = boto3.client("eks", region_name="us-east-1")
        role = "arn:aws:iam::123456789012:role/nodes"
        client.create_cluster(name="prod", roleArn=role, resourcesVpcConfig={"subnetIds": ["s"]})
        client.create_nodegroup(
            clusterName="prod",
            nodegroupName="gpu",
            nodeRole=role,
            subnets=["s"],
            instanceTypes=["g5.xlarge"],
            capacityType="SPOT",
            scalingConfig={"minSize": 1, "maxSize": 4, "desiredSize": 2},
        )
        yield client


def test_the_gateway_speaks_to_aws(eks: Any) -> None:
    gateway = NodeGroups("prod", "us-east-1", "")

    names = gateway.list_names()
    group = gateway.describe("gpu")
    gateway.scale("gpu", WANTED, token="once")

    assert names == ["gpu"]
    assert (group.capacity_type, group.instance_types, group.size) == (
        "spot",
        ("g5.xlarge",),
        BEFORE,
    )
    assert gateway.describe("gpu").size == WANTED
    with pytest.raises(ObjectNotFound, match="eks:DescribeNodegroup other failed"):
        gateway.describe("other")
