"""How a node's device plugin shares GPUs: a label that chooses a key of the ConfigMap that it reads.

The test plays the device plugin: it sets what the node offers.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from fleet.actions.domain import plugin_configs
from fleet.actions.domain.evidence import Evidence
from fleet.actions.domain.plugin_configs import CONFIG_LABEL
from fleet.actions.services import requests
from fleet.kube.domain.errors import Unreachable
from fleet.models import FleetAction, Node
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, Unavailable
from tests.accounts import make_user
from tests.fleet.actions.conftest import Hands
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = pytest.mark.django_db
FOUR = """
version: v1
sharing:
  timeSlicing:
    resources:
      - name: nvidia.com/gpu
        replicas: 4
"""
RENAMED = FOUR.replace("timeSlicing:\n", "timeSlicing:\n    renameByDefault: true\n")
MPS = FOUR.replace("timeSlicing", "mps").replace("4", "10")
DATA = {"four": FOUR, "mps": MPS, "renamed": RENAMED, "whole": "version: v1\n", "broken": "a: [1"}


def plugin_pod(node: str = "node-1") -> dict[str, Any]:
    """As the chart of the device plugin makes it, with a ConfigMap."""
    env = [
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "NODE_LABEL", "value": CONFIG_LABEL},
        {"name": "CONFIG_FILE_SRCDIR", "value": "/available-configs"},
    ]
    mounts = [
        {"name": "config", "mountPath": "/config"},
        {"name": "available-configs", "mountPath": "/available-configs"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "nvidia-device-plugin-x",
            "namespace": "gpu-operator",
            "uid": "plugin",
            "ownerReferences": [{"kind": "DaemonSet", "name": "p", "uid": "d", "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "initContainers": [{"name": "init", "env": env, "volumeMounts": mounts}],
            "containers": [{"name": "plugin"}],
            "volumes": [
                {"name": "config", "emptyDir": {}},
                {"name": "available-configs", "configMap": {"name": "sharing"}},
            ],
        },
        "status": {"phase": "Running"},
    }


def config_map(data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "sharing", "namespace": "gpu-operator"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def sharing(node: Node, kube: FakeKube) -> Node:
    kube.put(plugin_pod(), config_map(DATA))
    return node


def live(kube: FakeKube) -> dict[str, Any]:
    return kube.objects["Node", "", "node-1"]


def offer(kube: FakeKube, **resources: str) -> None:
    live(kube)["status"]["allocatable"] = {
        name.replace("__", "/").replace("_", "."): amount for name, amount in resources.items()
    }


def request_config(lead: User, node: Node, config: str = "four", **more: Any) -> FleetAction:
    call: dict[str, Any] = {"actor": lead, "node_id": node.pk, "config": config}
    return requests.request_gpu_sharing(**call | more)


def test_what_each_key_says() -> None:
    configs = {config.key: config for config in plugin_configs.read_configs(DATA)}

    assert [str(configs[key]) for key in ("four", "mps", "whole", "broken")] == [
        "four: 4 replicas per GPU, time-slicing",
        "mps: 10 replicas per GPU, mps",
        "whole: GPUs are not shared",
        "broken: it is not YAML",
    ]
    assert configs["four"].resources(2) == {"nvidia.com/gpu": 8}
    assert configs["renamed"].resources(2) == {"nvidia.com/gpu.shared": 8}
    assert configs["whole"].resources(2) == {"nvidia.com/gpu": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "it is not a configuration of the device plugin"),
        (FOUR.replace("4", "1"), "its replicas are not 2 to 1000"),
        (FOUR.replace("4", "'4'"), "its replicas are not 2 to 1000"),
        (FOUR.replace("4", "true"), "its replicas are not 2 to 1000"),
        (FOUR.replace("4", "100000"), "its replicas are not 2 to 1000"),
        (FOUR.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"), "it shares no nvidia.com/gpu"),
        (
            FOUR + "  mps: {resources: []}\n",
            "it has time-slicing and MPS, of which a node can have one",
        ),
        ("sharing: {timeSlicing: {resources: 4}}", "it shares no nvidia.com/gpu"),
        ("x" * 70_000, "it is too long"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, problem: str) -> None:
    [config] = plugin_configs.read_configs({"key": text})

    assert config.problem == problem


@pytest.mark.parametrize("key", ["-four", "four.", "a b", "x" * 64, "four\n"])
def test_a_key_that_no_label_can_have_is_refused(key: str) -> None:
    [config] = plugin_configs.read_configs({key: FOUR})

    assert config.problem == "its key cannot be the value of a label"


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=200), max_size=4))
def test_any_text_is_read_or_refused(data: dict[str, str]) -> None:
    assert [config.key for config in plugin_configs.read_configs(data)] == sorted(data)


def test_the_config_map_is_found_by_what_the_plugin_mounts() -> None:
    other = plugin_pod()
    other["spec"]["initContainers"][0]["env"].pop()

    assert str(plugin_configs.find_source([other, plugin_pod()])) == "gpu-operator/sharing"
    assert plugin_configs.find_source([other]) is None


def test_a_node_is_drained_shared_and_opened_again(
    sharing: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_config(lead, sharing, "renamed")
    evidence = Evidence.from_json(action.evidence)
    hands.approve(action, admin)
    hands.sweep(8)
    action.refresh_from_db()
    waiting = (action.state, action.state_reason, live(kube)["spec"]["unschedulable"])
    offer(kube, nvidia_com__gpu="0", nvidia_com__gpu_shared="8")
    hands.sweep(3)
    action.refresh_from_db()

    assert [(row.label, row.before, row.after) for row in evidence.changes] == [
        (
            "Device plugin configuration",
            "the default",
            "renamed: 4 replicas per GPU, time-slicing",
        ),
        ("GPU resources", "2 x nvidia.com/gpu", "8 x nvidia.com/gpu.shared"),
    ]
    assert evidence.warnings == (
        "nvidia.com/gpu will no longer be offered here: pods that request it need another node.",
        "Time-sliced replicas have no memory of their own: one pod can take all of it, and then the others fail.",
    )
    assert waiting == (
        "applying",
        "Waiting for the device plugin: the node offers 2 x nvidia.com/gpu, not yet 8 x nvidia.com/gpu.shared.",
        True,
    )
    assert kube.evicted == [("vision", "detector-r1-a"), ("vision", "detector-r1-b")]
    assert live(kube)["metadata"]["labels"][CONFIG_LABEL] == "renamed"
    assert (action.state, action.state_reason) == (
        "done",
        "The node offers 8 x nvidia.com/gpu.shared.",
    )
    assert not live(kube)["spec"].get("unschedulable")


def test_a_plugin_that_never_reloads_leaves_the_node_cordoned(
    sharing: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_config(lead, sharing, deadline_minutes=5)
    hands.approve(action, admin)
    hands.sweep(8)
    hands.sweep(2, seconds=60 * 50)
    action.refresh_from_db()

    assert action.state == "failed"
    assert "not yet 8 x nvidia.com/gpu" in action.state_reason
    assert live(kube)["spec"]["unschedulable"] is True


def test_an_approval_is_void_when_the_key_says_something_else(
    sharing: Node, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    action = request_config(lead, sharing)
    kube.put(config_map(DATA | {"four": FOUR.replace("4", "6")}))

    with pytest.raises(Conflict, match="changed after you opened it"):
        hands.approve(action, admin)
    assert kube.patched == []


def test_refusals_change_nothing(sharing: Node, lead: User, kube: FakeKube, hands: Hands) -> None:
    def refused(error: type[DomainError], config: str = "four", **more: Any) -> str:
        with pytest.raises(error) as caught:
            request_config(lead, sharing, config, **more)
        assert (FleetAction.objects.count(), kube.patched, kube.evicted) == (0, [], [])
        return caught.value.message

    refused(Forbidden, actor=make_user())
    refused(Invalid, deadline_minutes=1)
    assert "gpu-operator/sharing has no key none" in refused(Invalid, "none")
    assert "it is not YAML" in refused(Invalid, "broken")
    live(kube)["metadata"]["labels"][CONFIG_LABEL] = "four"
    assert "already has the configuration four" in refused(Conflict)
    del live(kube)["metadata"]["labels"][CONFIG_LABEL]
    offer(kube, **{"nvidia_com__mig-1g_5gb": "7"})
    assert "offers MIG slices" in refused(Conflict)
    kube.forbidden = {"configmaps"}
    assert "--fleet-actions --device-plugin-config gpu-operator/sharing" in refused(Conflict)
    kube.forbidden = set()
    kube.remove("Pod", "gpu-operator", "nvidia-device-plugin-x")
    assert "No device plugin that reads configurations" in refused(Conflict)
    kube.broken = Unreachable("connection refused")
    refused(Unavailable)


def test_from_the_node_to_the_request(
    sharing: Node, lead: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    client.force_login(lead)
    here = page(client.get(f"/fleet/nodes/{sharing.pk}")).link("GPU sharing")
    shown = page(client.get(here))
    broken = client.post(here, {"config": "broken", "deadline_minutes": "30"})
    sent = page(client.post(here, {"config": "mps", "deadline_minutes": "30"}, follow=True))
    api = client.post(
        f"/api/v1/nodes/{sharing.pk}/gpu-sharing",
        {"config": "four"},
        content_type="application/json",
    )
    kube.broken = Unreachable("connection refused")
    away = page(client.get(here))

    assert "gpu-operator/sharing" in shown.text
    assert "time-slicing, 4 replicas per GPU" in shown.text
    assert "it is not YAML" in shown.text
    assert broken.status_code == 422
    assert "Set GPU sharing of node-1" in sent.text
    assert "mps: 10 replicas per GPU, mps" in sent.text
    assert (api.status_code, api.json()["code"]) == (409, "action_open")
    assert "cannot be reached" in away.text
