"""Changing and creating Karpenter NodePools by request."""

from __future__ import annotations

import copy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import requests
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.provisioner import NodeLabels, Provisioner
from fleet.kube.domain.errors import ObjectInvalid, ObjectNotFound, Unreachable
from fleet.models import Cluster, FleetAction
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from tests.accounts import make_user
from tests.fleet.actions.conftest import Hands
from tests.fleet.actions.node_pools import WANTED, live_pool
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(cluster: Cluster, catalogue: None, kube: FakeKube) -> dict[str, Any]:
    kube.put(live_pool())
    return kube.objects["NodePool", "", "gpu"]


def change(lead: User, cluster: Cluster, **changed: Any) -> FleetAction:
    return requests.request_pool_change(
        actor=lead, cluster_id=cluster.pk, name="gpu", settings=replace(WANTED, **changed)
    )


def refused(kube: FakeKube, error: type[DomainError], call: Any) -> str:
    with pytest.raises(error) as raised:
        call()
    assert FleetAction.objects.count() == 0
    assert kube.patched == []
    return raised.value.message


def test_a_change_shows_its_difference_and_cost_and_is_applied_after_the_approval(
    pool: dict[str, Any], cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = change(lead, cluster)
    before = copy.deepcopy(kube.objects["NodePool", "", "gpu"]["spec"])
    hands.approve(action, admin)
    hands.sweep(4)
    action.refresh_from_db()
    evidence = Evidence.from_json(action.evidence)

    assert before == live_pool()["spec"]
    assert action.state == "done"
    assert len(kube.patched) == 1
    assert kube.objects["NodePool", "", "gpu"]["spec"]["limits"]["nvidia.com/gpu"] == "8"
    assert [(row.label, row.before, row.after) for row in evidence.changes][:3] == [
        ("Instance types", "by other requirements", "g5.xlarge, g6.xlarge"),
        ("Capacity", "on-demand", "on-demand, spot"),
        ("GPU limit", "4", "8"),
    ]
    # Spot has no price in the catalogue.
    assert evidence.usd_per_hour_after is None
    assert evidence.warnings == (
        "argocd-controller also writes this node pool, and may restore its own values.",
        "The price of one of its instance types is not known.",
    )


def test_the_cost_is_that_of_the_limit_at_the_dearest_price(
    pool: dict[str, Any], cluster: Cluster, lead: User, kube: FakeKube, hands: Hands
) -> None:
    action = change(lead, cluster, capacity_types=("on-demand",))

    assert Evidence.from_json(action.evidence).usd_per_hour_after == Decimal("8.048000")


def test_a_pool_that_somebody_changed_after_the_approval_is_not_touched(
    pool: dict[str, Any], cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = change(lead, cluster)
    hands.approve(action, admin)
    pool["spec"]["weight"] = 90
    pool["metadata"]["generation"] = 4
    hands.sweep(3)
    action.refresh_from_db()

    assert (action.state, kube.patched) == ("failed", [])
    assert action.state_reason.startswith("Someone changed the node pool after the approval.")


def test_a_pool_that_changed_before_the_approval_is_reviewed_again(
    pool: dict[str, Any], cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = change(lead, cluster)
    pool["spec"]["weight"] = 90
    pool["metadata"]["generation"] = 4

    with pytest.raises(Conflict, match="Review it again"):
        hands.approve(action, admin)
    action.refresh_from_db()
    hands.approve(action, admin)
    hands.sweep(4)
    action.refresh_from_db()

    assert (action.state, pool["spec"]["weight"]) == ("done", 90)


def test_a_worker_that_dies_after_the_patch_patches_once(
    pool: dict[str, Any],
    cluster: Cluster,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fleet.actions.services import advance

    action = change(lead, cluster)
    hands.approve(action, admin)
    hands.sweep(1)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(advance, "_record", die)
        with pytest.raises(KeyboardInterrupt):
            hands.sweep(1)
    # A controller counts a new generation meanwhile.
    pool["metadata"]["generation"] = 4
    hands.sweep(3, seconds=400)
    action.refresh_from_db()

    assert (action.state, len(kube.patched)) == ("done", 1)


def test_karpenter_says_that_it_is_not_ready(
    pool: dict[str, Any], cluster: Cluster, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = change(lead, cluster)
    condition = {"type": "Ready", "status": "False", "message": "NodeClass gpu not found"}
    pool["status"]["conditions"] = [condition]
    hands.approve(action, admin)
    hands.sweep(3)
    action.refresh_from_db()
    waiting = (action.state, action.state_reason)
    hands.sweep(1, seconds=1000)
    action.refresh_from_db()

    assert waiting == (
        "applying",
        "Karpenter says that it is not ready: NodeClass gpu not found",
    )
    assert action.state == "failed"


def test_a_new_pool_is_created_once(
    cluster: Cluster, catalogue: None, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = requests.request_pool_creation(
        actor=lead, cluster_id=cluster.pk, name="fresh", settings=WANTED
    )
    untouched = dict(kube.objects)
    hands.approve(action, admin)
    hands.sweep(4)
    action.refresh_from_db()

    assert untouched == {}
    assert action.state == "done"
    # Two dry runs: at the request and at the approval.
    assert kube.applied == [("NodePool", True), ("NodePool", True), ("NodePool", False)]
    assert kube.objects["NodePool", "", "fresh"]["metadata"]["name"] == "fresh"


def test_refusals_change_nothing(
    pool: dict[str, Any], cluster: Cluster, lead: User, kube: FakeKube, hands: Hands
) -> None:
    def create(name: str = "gpu") -> FleetAction:
        return requests.request_pool_creation(
            actor=lead, cluster_id=cluster.pk, name=name, settings=WANTED
        )

    def change_by(actor: User, name: str = "gpu", cluster_id: int = cluster.pk) -> FleetAction:
        return requests.request_pool_change(
            actor=actor, cluster_id=cluster_id, name=name, settings=WANTED
        )

    refused(kube, Forbidden, lambda: change_by(make_user()))
    refused(kube, NotFound, lambda: change_by(lead, cluster_id=0))
    refused(kube, Conflict, lambda: change_by(lead, "missing"))
    refused(kube, Invalid, lambda: change_by(lead, "../nodes"))
    refused(kube, Invalid, lambda: create("UPPER"))
    refused(kube, Conflict, create)
    refused(kube, Invalid, lambda: change(lead, cluster, gpu_limit=-1))
    kube.invalid["NodePool"] = ObjectInvalid("spec.limits: Invalid value")
    assert "spec.limits: Invalid value" in refused(kube, Invalid, lambda: change_by(lead))
    kube.invalid["NodePool"] = ObjectNotFound("the server could not find the requested resource")
    assert "has no Karpenter" in refused(kube, Conflict, lambda: create("another"))
    kube.invalid.clear()
    kube.allows = lambda attributes: attributes["verb"] != "patch"
    refused(kube, Conflict, lambda: change_by(lead))
    kube.broken = Unreachable("away")
    refused(kube, Unavailable, lambda: change_by(lead))


@pytest.mark.parametrize(("gpus", "runs"), [("1", "1 GPU"), ("2", "2 GPUs")])
def test_a_limit_below_what_runs_is_shown(
    pool: dict[str, Any], cluster: Cluster, lead: User, gpus: str, runs: str
) -> None:
    pool["status"]["resources"]["nvidia.com/gpu"] = gpus

    evidence = Evidence.from_json(change(lead, cluster, gpu_limit=0).evidence)

    assert f"It runs {runs}: with a limit of 0 no node is removed, and none starts." in (
        evidence.warnings
    )


def test_from_the_list_to_the_approver(
    pool: dict[str, Any], cluster: Cluster, lead: User, admin: User, kube: FakeKube, client: Client
) -> None:
    from fleet.clusters.domain.capabilities import Capabilities, Feature
    from fleet.clusters.domain.node_pools import parse_pools

    Cluster.objects.filter(pk=cluster.pk).update(
        capabilities=Capabilities(
            features={"karpenter": Feature(is_there=True)}, node_pools=parse_pools([live_pool()])
        ).to_json()
    )
    client.force_login(lead)
    listed = page(client.get("/fleet/pools"))
    address = listed.link("gpu")
    form = page(client.get(address))
    body = {
        "instance_types": "g5.xlarge, g6.xlarge",
        "capacity_types": "on-demand,spot",
        "gpu_limit": "2",
        "taints": "",
        "consolidation": "WhenEmpty",
        "consolidate_after": "5m",
    }
    wrong = client.post(address, {**body, "consolidate_after": "soon"})
    client.post(address, body)
    action = FleetAction.objects.get()
    client.force_login(admin)
    shown = page(client.get(f"/fleet/actions/{action.pk}"))
    listed_in_api = client.get(f"/api/v1/clusters/{cluster.pk}/node-pools").json()

    assert action.parameters["capacity_types"] == ["on-demand", "spot"]
    assert "instance-gpu-name: a10g" in listed.text
    assert form.text.count("GPU limit") == 1
    assert wrong.status_code == 422
    assert "It runs 4 GPUs: with a limit of 2 no node is removed, and none starts." in shown.text
    assert "- g5.xlarge" in shown.text
    assert [(row["name"], row["gpu_limit"], row["gpus"]) for row in listed_in_api] == [
        ("gpu", 4, 4)
    ]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(NodeLabels(), "EC2NodeClass"), (NodeLabels(Provisioner.AUTO_MODE, True), "NodeClass")],
)
def test_a_new_pool_is_of_the_node_classes_of_its_cluster(
    cluster: Cluster, lead: User, kube: FakeKube, labels: NodeLabels, kind: str
) -> None:
    cluster.capabilities = Capabilities(probed_at="x", node_labels=labels).to_json()
    cluster.save()

    action = requests.request_pool_creation(
        actor=lead,
        cluster_id=cluster.pk,
        name="fresh",
        settings=replace(WANTED, capacity_types=("reserved",), consolidation="Balanced"),
    )

    evidence = Evidence.from_json(action.evidence)
    assert (kind, "", WANTED.node_class) in [(c.label, c.before, c.after) for c in evidence.changes]
    assert any(f"reservations that its {kind} selects" in text for text in evidence.warnings)
