"""Changing and creating EC2NodeClasses by request."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from fleet.actions.domain import node_class_settings
from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.node_class_settings import NodeClassSettings
from fleet.actions.domain.pool_settings import apply_patch
from fleet.actions.services import class_requests
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.kube.domain.errors import ObjectInvalid, Unreachable
from fleet.models import Cluster, FleetAction, Node
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from tests.accounts import make_user
from tests.contract import schemas
from tests.fleet.actions.conftest import Hands
from tests.fleet.actions.node_pools import live_pool
from tests.fleet.fakes import FakeKube
from tests.page import page

NEW = NodeClassSettings(
    ami_alias="al2023@v20250505",
    role="KarpenterNodeRole-prod",
    subnet_tags=("karpenter.sh/discovery=prod", "tier=private"),
    security_group_tags=("karpenter.sh/discovery=prod",),
    volume_gib=200,
)


def live_class(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu", "generation": 2},
        "spec": {
            "amiSelectorTerms": [{"alias": "bottlerocket@v1.19.0"}],
            "instanceProfile": "nodes",
            "subnetSelectorTerms": [{"tags": {"a": "b"}}, {"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
            "blockDeviceMappings": [
                {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "4Gi"}},
                {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "50Gi", "iops": 4000}},
            ],
            "userData": "[settings]",
            **spec,
        },
    }


def test_a_new_class_has_what_was_named() -> None:
    assert node_class_settings.manifest("gpu", NEW)["spec"] == {
        "amiSelectorTerms": [{"alias": "al2023@v20250505"}],
        "role": "KarpenterNodeRole-prod",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod", "tier": "private"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeSize": "200Gi", "volumeType": "gp3", "encrypted": True},
            }
        ],
    }


def test_a_change_replaces_what_it_names_and_keeps_the_rest() -> None:
    before = live_class()
    wanted = NodeClassSettings(role="other", volume_gib=300)

    after = apply_patch(before, node_class_settings.patch(before, wanted))["spec"]

    assert after == {
        **{key: value for key, value in before["spec"].items() if key != "instanceProfile"},
        "role": "other",
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "4Gi"}},
            {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "300Gi", "iops": 4000}},
        ],
    }


def test_fields_that_are_sent_unchanged_change_nothing() -> None:
    tags = {"Name": "a, b", "team": "ml ops"}
    for before in (
        live_class(amiFamily="Custom"),
        live_class(securityGroupSelectorTerms=[{"tags": tags}]),
        live_class(subnetSelectorTerms=[{"tags": {"team": "ml ops"}}]),
    ):
        same = node_class_settings.read(before)

        assert same.problems(is_new=False) == {}
        assert apply_patch(before, node_class_settings.patch(before, same)) == before


def test_what_is_selected_by_other_means_is_not_shown_as_tags() -> None:
    assert node_class_settings.read(live_class()) == NodeClassSettings(
        ami_alias="bottlerocket@v1.19.0",
        instance_profile="nodes",
        security_group_tags=("karpenter.sh/discovery=prod",),
        volume_gib=50,
    )


@pytest.mark.parametrize("settings", [NEW, replace(NEW, role="", instance_profile="p")])
def test_classes_are_as_karpenter_publishes_them(settings: NodeClassSettings) -> None:
    published = schemas.require_custom()
    before = live_class()
    changed = apply_patch(before, node_class_settings.patch(before, settings))

    for item in (node_class_settings.manifest("gpu", settings), changed):
        published[item["apiVersion"], item["kind"]].validate(item)


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("ami_alias", {"ami_alias": ""}),
        ("ami_alias", {"ami_alias": "windows2022@latest"}),
        ("ami_alias", {"ami_alias": "al2023@latest\n"}),
        ("role", {"role": ""}),
        ("role", {"instance_profile": "p"}),
        ("role", {"role": "arn:aws:iam::1:role/x"}),
        ("subnet_tags", {"subnet_tags": ()}),
        ("subnet_tags", {"subnet_tags": ("discovery",)}),
        ("subnet_tags", {"subnet_tags": ("=prod",)}),
        ("subnet_tags", {"subnet_tags": tuple(f"k{i}=v" for i in range(21))}),
        ("security_group_tags", {"security_group_tags": ()}),
        ("volume_gib", {"volume_gib": 19}),
        ("volume_gib", {"volume_gib": 16_385}),
    ],
)
def test_settings_that_are_not_valid_name_their_field(field: str, changed: dict[str, Any]) -> None:
    assert set(replace(NEW, **changed).problems(is_new=True)) == {field}


def test_a_change_may_leave_everything_out_but_not_name_both() -> None:
    assert NodeClassSettings().problems(is_new=False) == {}
    assert set(NodeClassSettings(role="a", instance_profile="b").problems(is_new=False)) == {"role"}


def request_new(lead: User, cluster: Cluster, **more: Any) -> FleetAction:
    call: dict[str, Any] = {"actor": lead, "cluster_id": cluster.pk, "name": "gpu", "settings": NEW}
    return class_requests.request_class_creation(**call | more)


def request_change(lead: User, cluster: Cluster, **more: Any) -> FleetAction:
    settings = NodeClassSettings(ami_alias="bottlerocket@latest")
    call: dict[str, Any] = {"actor": lead, "cluster_id": cluster.pk, "name": "gpu"}
    return class_requests.request_class_change(**call | {"settings": settings} | more)


@pytest.mark.django_db
def test_a_class_is_created_after_the_approval(
    cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_new(lead, cluster)
    evidence = Evidence.from_json(action.evidence)
    before = list(kube.applied)
    hands.approve(action, admin)
    hands.sweep(3)
    action.refresh_from_db()

    assert before == [("EC2NodeClass", True)]
    assert (action.state, action.title) == ("done", "Create node class gpu")
    # Dry runs of the request and of the approval, then the class.
    assert [is_dry for _, is_dry in kube.applied] == [True, True, False]
    assert ("Disk", "", "200 GiB") in [(c.label, c.before, c.after) for c in evidence.changes]
    assert evidence.warnings == ()


@pytest.mark.django_db
def test_a_change_says_which_nodes_karpenter_replaces(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.put(live_class(), live_pool())
    Node.objects.filter(pk=node.pk).update(labels={"karpenter.sh/nodepool": "gpu"})
    action = request_change(lead, node.cluster)
    evidence = Evidence.from_json(action.evidence)
    hands.approve(action, admin)
    hands.sweep(3)
    action.refresh_from_db()
    live = kube.objects["EC2NodeClass", "", "gpu"]["spec"]

    assert [(row.label, row.before, row.after) for row in evidence.changes] == [
        ("AMI", "bottlerocket@v1.19.0", "bottlerocket@latest")
    ]
    assert evidence.warnings == (
        "Karpenter replaces the 1 running node of gpu (drift), as disruption budgets allow.",
        "With @latest Karpenter replaces nodes whenever AWS publishes an image. Name a version to choose when.",
    )
    assert action.state == "done"
    assert live["amiSelectorTerms"] == [{"alias": "bottlerocket@latest"}]
    assert live["userData"] == "[settings]"
    assert len(kube.patched) == 1


@pytest.mark.django_db
def test_a_class_that_somebody_changed_after_the_approval_is_not_touched(
    cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    kube.put(live_class())
    action = request_change(lead, cluster)
    hands.approve(action, admin)
    changed = copy.deepcopy(live_class(role="x"))
    changed["metadata"]["generation"] = 3
    kube.put(changed)
    hands.sweep(3)
    action.refresh_from_db()

    assert (action.state, kube.patched) == ("failed", [])
    assert "Someone changed the EC2NodeClass after the approval" in action.state_reason


@pytest.mark.django_db
def test_refusals_change_nothing(cluster: Cluster, lead: User, kube: FakeKube) -> None:
    def refused(error: type[DomainError], call: Any = request_change, **more: Any) -> str:
        with pytest.raises(error) as caught:
            call(lead, cluster, **more)
        assert (FleetAction.objects.count(), kube.patched) == (0, [])
        assert ("EC2NodeClass", False) not in kube.applied
        return caught.value.message

    refused(Forbidden, actor=make_user())
    refused(Conflict)
    refused(NotFound, cluster_id=0)
    refused(Invalid, request_new, name="Gpu")
    refused(Invalid, request_new, settings=NodeClassSettings())
    kube.put(live_class(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="Custom"))
    refused(Conflict, request_new)
    refused(Conflict, settings=NodeClassSettings())
    refused(Invalid, settings=NodeClassSettings(volume_gib=100))
    kube.invalid["EC2NodeClass"] = ObjectInvalid("spec.role: must specify exactly one")
    assert "must specify exactly one" in refused(Invalid)
    kube.invalid.clear()
    kube.allows = lambda attributes: attributes["resource"] != "ec2nodeclasses"
    assert "cluster_rbac --fleet-actions" in refused(Conflict)
    kube.broken = Unreachable("connection refused")
    refused(Unavailable)


@pytest.mark.django_db
def test_from_the_list_to_the_request(
    cluster: Cluster, lead: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    kube.put(live_class())
    has_karpenter = Capabilities(features={"karpenter": Feature(is_there=True)}, node_pools=())
    Cluster.objects.update(capabilities=has_karpenter.to_json())
    client.force_login(lead)
    here = f"/fleet/clusters/{cluster.pk}/node-classes"
    pools = client.get("/fleet/pools")
    listed = page(client.get(here))
    change = listed.link("gpu")
    unchanged = client.post(change, {"comment": "nothing"})
    sent = page(client.post(change, {"volume_gib": "300"}, follow=True))
    new = listed.link("New EC2NodeClass")
    empty = client.post(new, {"name": "large"})
    made = page(
        client.post(
            new,
            {
                "name": "large",
                "ami_alias": "al2023@latest",
                "role": "nodes",
                "subnet_tags": "karpenter.sh/discovery=prod",
                "security_group_tags": "karpenter.sh/discovery=prod, tier=private",
            },
            follow=True,
        )
    )
    in_api = client.get(f"/api/v1/clusters/{cluster.pk}/node-classes").json()
    kube.broken = Unreachable("connection refused")
    away = page(client.get(here))

    assert here in pools.content.decode()
    assert "bottlerocket@v1.19.0" in listed.text
    assert unchanged.status_code == 409
    assert "Change node class gpu" in sent.text
    assert "300 GiB" in sent.text
    assert "Per month" not in sent.text
    assert empty.status_code == 422
    assert "a new class needs it" in page(empty).text
    assert "Create node class large" in made.text
    assert "Karpenter's default disk has 20 GiB" in made.text
    assert [(row["name"], row["volume_gib"], row["subnet_tags"]) for row in in_api] == [
        ("gpu", 50, [])
    ]
    assert "Not known: The cluster cannot be reached" in away.text
