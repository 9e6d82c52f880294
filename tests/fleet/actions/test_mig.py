"""The MIG layout of a node: drained, labeled, cut by the MIG manager, and open for pods again.

The test plays the MIG manager and the device plugin: it sets the labels and what the node offers, as they do.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from django.test import Client

from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.mig_layouts import BALANCED, CONFIG_LABEL, STATE_LABEL
from fleet.actions.services import decisions, requests
from fleet.kube.domain.errors import Throttled, Unreachable
from fleet.models import Cluster, FleetAction, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, Unavailable
from tests.accounts import make_user
from tests.fleet import objects
from tests.fleet.actions.conftest import Hands, owned
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = pytest.mark.django_db
A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.memory": "40960",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/gpu.deploy.mig-manager": "true",
}
SLICES = {"nvidia.com/mig-1g.5gb": "14", "nvidia.com/gpu": "0"}


@pytest.fixture
def a100(cluster: Cluster, detector: int, catalogue: None, kube: FakeKube) -> Node:
    """Two pods on node-1 with two A100; node-2 of the same type has one free GPU."""
    nodes = [
        objects.node(gpus=2, labels=A100, instance_type="p4d.24xlarge"),
        objects.node("node-2", labels=A100, instance_type="p4d.24xlarge"),
    ]
    pods = [owned("detector-r1-a"), owned("detector-r1-b")]
    kube.put(*nodes, *pods)
    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing(nodes, 50),
        pods=FullListing(pods, 50),
        at=objects.START,
    )
    return Node.objects.get(name="node-1")


def live(kube: FakeKube) -> dict[str, Any]:
    return kube.objects["Node", "", "node-1"]


def labels(kube: FakeKube) -> dict[str, str]:
    return dict(live(kube)["metadata"]["labels"])


def play_mig_manager(kube: FakeKube, state: str, allocatable: dict[str, str] | None = None) -> None:
    live(kube)["metadata"]["labels"][STATE_LABEL] = state
    if allocatable is not None:
        live(kube)["status"]["allocatable"] = allocatable


def request_layout(lead: User, node: Node, layout: str = "all-1g.5gb", **more: Any) -> FleetAction:
    return requests.request_mig_layout(actor=lead, node_id=node.pk, layout=layout, **more)


def test_a_node_is_drained_cut_and_opened_again(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    live(kube)["metadata"]["labels"][STATE_LABEL] = "success"
    action = request_layout(lead, a100)
    evidence = Evidence.from_json(action.evidence)
    hands.approve(action, admin)
    hands.sweep(7)
    action.refresh_from_db()
    labeled = (labels(kube)[CONFIG_LABEL], labels(kube).get(STATE_LABEL), action.state_reason)
    play_mig_manager(kube, "pending")
    hands.sweep(2)
    action.refresh_from_db()
    pending = action.state_reason
    play_mig_manager(kube, "success", {"cpu": "3920m"})
    hands.sweep(2)
    action.refresh_from_db()
    restarting = (action.state, action.state_reason)
    cordoned = live(kube)["spec"]["unschedulable"]
    play_mig_manager(kube, "success", {**SLICES, "cpu": "3920m"})
    hands.sweep(4)
    action.refresh_from_db()

    assert [(row.label, row.before, row.after) for row in evidence.changes] == [
        ("MIG layout", "whole GPUs", "all-1g.5gb: 7 x 1g.5gb per GPU"),
        ("GPU resources", "2 x nvidia.com/gpu", "14 x nvidia.com/mig-1g.5gb"),
    ]
    assert [(row.deployment, row.pods, row.without_room) for row in evidence.deployments] == [
        ("detector", 2, 1)
    ]
    assert (
        "nvidia.com/gpu will no longer be offered here: pods that request it need another node."
        in evidence.warnings
    )
    assert len(kube.evicted) == 2
    # The state of the layout before is not taken for this one's.
    assert labeled == ("all-1g.5gb", None, "Waiting for the MIG manager.")
    assert pending == "Waiting for the MIG manager. It says pending."
    assert restarting == (
        "applying",
        "The MIG manager is done. Waiting for the device plugin: the node offers none, not yet "
        "14 x nvidia.com/mig-1g.5gb.",
    )
    assert cordoned is True
    assert (action.state, action.state_reason) == (
        "done",
        "The node offers 14 x nvidia.com/mig-1g.5gb.",
    )
    assert not live(kube)["spec"].get("unschedulable")


def test_a_mig_manager_that_fails_leaves_the_node_cordoned(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_layout(lead, a100)
    hands.approve(action, admin)
    hands.sweep(7)
    play_mig_manager(kube, "failed")
    hands.sweep(2)
    action.refresh_from_db()

    assert (action.state, action.state_reason) == (
        "failed",
        "The MIG manager could not apply all-1g.5gb. Its log on the node has the reason. The node stays cordoned.",
    )
    assert live(kube)["spec"]["unschedulable"] is True
    with pytest.raises(Conflict, match="acts on a change of the label only: request all-disabled"):
        request_layout(lead, a100)


def test_a_manager_that_never_answers_fails_at_the_deadline_and_stays_cordoned(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_layout(lead, a100, deadline_minutes=5)
    hands.approve(action, admin)
    hands.sweep(7)
    hands.sweep(2, seconds=60 * 50)
    action.refresh_from_db()

    assert (action.state, action.state_reason) == (
        "failed",
        "It was not done by its deadline. Waiting for the MIG manager.",
    )
    assert live(kube)["spec"]["unschedulable"] is True


def test_a_worker_that_dies_between_effects_repeats_nothing(
    a100: Node,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fleet.actions.services import advance

    action = request_layout(lead, a100)
    hands.approve(action, admin)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(12):
        with monkeypatch.context() as patched:
            patched.setattr(advance, "_record", die)
            with contextlib.suppress(KeyboardInterrupt):
                hands.sweep(1, seconds=400)
        hands.sweep(1, seconds=400)
        if labels(kube).get(CONFIG_LABEL):
            play_mig_manager(kube, "success", SLICES)
    action.refresh_from_db()

    names = [
        name for _, _, body in kube.patched for name in body.get("metadata", {}).get("labels", {})
    ]
    assert action.state == "done"
    assert len(kube.evicted) == 2
    assert names == [CONFIG_LABEL, STATE_LABEL]


def test_a_node_that_was_cordoned_before_stays_so(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    live(kube)["spec"]["unschedulable"] = True
    action = request_layout(lead, a100)
    hands.approve(action, admin)
    hands.sweep(7)
    play_mig_manager(kube, "success", SLICES)
    hands.sweep(3)
    action.refresh_from_db()

    assert (action.state, action.state_reason) == (
        "done",
        "The node offers 14 x nvidia.com/mig-1g.5gb. It was cordoned before and stays cordoned.",
    )
    assert live(kube)["spec"]["unschedulable"] is True


def test_a_person_who_uncordons_or_relabels_meanwhile(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_layout(lead, a100)
    hands.approve(action, admin)
    hands.sweep(7)
    live(kube)["spec"]["unschedulable"] = None
    hands.sweep(1)
    again = live(kube)["spec"]["unschedulable"]
    live(kube)["metadata"]["labels"][CONFIG_LABEL] = "all-3g.20gb"
    hands.sweep(1)
    action.refresh_from_db()

    assert again is True
    assert (action.state, action.state_reason) == (
        "failed",
        "Someone set nvidia.com/mig.config=all-3g.20gb meanwhile. The node stays cordoned.",
    )


@pytest.mark.parametrize(("passes", "is_labeled"), [(2, False), (7, True)])
def test_canceling_restores_the_node_until_its_label_is_set(
    a100: Node,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    passes: int,
    is_labeled: bool,
) -> None:
    kube.held["vision", "detector-r1-a"] = Throttled("budget detector", retry_after_seconds=1)
    if is_labeled:
        kube.held.clear()
    action = request_layout(lead, a100)
    hands.approve(action, admin)
    hands.sweep(passes)
    decisions.cancel(actor=lead, action_id=action.pk)
    hands.sweep(3)
    action.refresh_from_db()

    assert action.state == "canceled"
    assert (CONFIG_LABEL in labels(kube)) is is_labeled
    assert bool(live(kube)["spec"].get("unschedulable")) is is_labeled


def test_refusals_change_nothing(a100: Node, lead: User, kube: FakeKube, hands: Hands) -> None:
    def refused(error: type[DomainError], layout: str = "all-1g.5gb", **more: Any) -> str:
        with pytest.raises(error) as caught:
            requests.request_mig_layout(
                **{"actor": lead, "node_id": a100.pk, "layout": layout, **more}
            )
        assert (FleetAction.objects.count(), kube.patched, kube.evicted) == (0, [], [])
        return caught.value.message

    def relabel(**changed: str | None) -> None:
        names = {key.replace("__", "/").replace("_", "."): value for key, value in changed.items()}
        for mapping in (a100.labels, live(kube)["metadata"]["labels"]):
            for key, value in names.items():
                mapping.pop(key, None) if value is None else mapping.update({key: value})
        a100.save()

    refused(Forbidden, actor=make_user())
    refused(Invalid, deadline_minutes=1)
    assert "no layout all-1g.10gb" in refused(Invalid, "all-1g.10gb")
    refused(Invalid, "../x")
    relabel(nvidia_com__mig_strategy="single")
    assert "slices of one size only" in refused(Conflict, BALANCED)
    relabel(nvidia_com__mig_strategy="none")
    assert "no slice would be offered" in refused(Conflict)
    relabel(nvidia_com__mig_strategy="mixed")
    relabel(nvidia_com__mig_config="all-1g.5gb", nvidia_com__mig_config_state="success")
    del live(kube)["metadata"]["labels"]["nvidia.com/mig.config.state"]
    live(kube)["metadata"]["labels"][STATE_LABEL] = "success"
    assert "already has the layout all-1g.5gb" in refused(Conflict)
    relabel(nvidia_com__mig_config=None)
    a100.labels.pop("nvidia.com/gpu.deploy.mig-manager")
    a100.save()
    assert "No MIG manager is known" in refused(Conflict)
    a100.labels["nvidia.com/gpu.deploy.mig-manager"] = "true"
    a100.labels["nvidia.com/mig.capable"] = "false"
    a100.save()
    assert "do not support MIG" in refused(Conflict)
    a100.labels["nvidia.com/mig.capable"] = "true"
    a100.save()
    kube.allows = lambda attributes: attributes["resource"] != "nodes"
    assert "cluster_rbac --fleet-actions" in refused(Conflict)
    kube.broken = Unreachable("connection refused")
    refused(Unavailable)


def test_from_the_node_to_the_request(
    a100: Node, lead: User, admin: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    client.force_login(lead)
    here = page(client.get(f"/fleet/nodes/{a100.pk}")).link("MIG layout")
    shown = page(client.get(here))
    unknown = client.post(
        here, {"layout": "all-9g.90gb", "deadline_minutes": "30", "comment": "cut"}
    )
    sent = page(
        client.post(
            here, {"layout": BALANCED, "deadline_minutes": "30", "comment": "cut"}, follow=True
        )
    )
    action = FleetAction.objects.get()
    api = client.post(
        f"/api/v1/nodes/{a100.pk}/mig", {"layout": "all-3g.20gb"}, content_type="application/json"
    )
    Node.objects.filter(pk=a100.pk).update(gpu_product="NVIDIA-A10G")
    a10g = page(client.get(here))

    assert "14 x nvidia.com/mig-1g.5gb" in shown.text
    assert unknown.status_code == 422
    assert "Set MIG layout of node-1" in sent.text
    assert "all-balanced: 2 x 1g.5gb, 1 x 2g.10gb, 1 x 3g.20gb per GPU" in sent.text
    assert "Room elsewhere" in sent.text
    assert action.parameters == {
        "value": "all-balanced",
        "deadline_minutes": 30,
        "evict_unmanaged": False,
    }
    assert (api.status_code, api.json()["code"]) == (409, "action_open")
    assert "NVIDIA-A10G, which does not support MIG or is unknown to Slipway." in a10g.text
    assert "Request layout" not in a10g.text
