"""What Karpenter makes of our pods' requirements, at a real API server: the schema of NodeClaims refuses restricted labels.

Karpenter copies a pod's node selector and the first required term of its affinity into the NodeClaim. The schema is the
published one of Karpenter and, for EKS Auto Mode, which publishes none, the same rules about its own label domain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
import yaml

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Placement
from fleet.actions.domain import pool_settings
from fleet.clusters.domain.provisioner import NodeLabels, Provisioner
from tests.cluster import kserve
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served
from tests.deployments.manifest_strategies import CONTEXT
from tests.fleet.actions import test_pool_settings

_FILE: Final = "nodeclaims.karpenter.sh.yaml"
_DOMAINS: Final = {
    Provisioner.EKS: "karpenter.k8s.aws",
    Provisioner.AUTO_MODE: "eks.amazonaws.com",
}
_NODE_GROUP: Final = "eks.amazonaws.com/capacityType"

pytestmark = pytest.mark.skipif(
    kserve.named_folder() is None, reason="the kinds of Karpenter come with SLIPWAY_CRD_DIR"
)


@pytest.fixture(params=list(_DOMAINS))
def provisioner(request: pytest.FixtureRequest, admin: Kubectl) -> Iterator[Provisioner]:
    """The cluster with the NodeClaims of this provisioner."""
    folder = kserve.named_folder()
    assert folder is not None
    text = (folder / _FILE).read_text()
    published = yaml.safe_load(text)
    own = yaml.safe_load(text.replace(_DOMAINS[Provisioner.EKS], _DOMAINS[request.param]))
    admin.apply([own])
    admin.run("wait", "--for=condition=Established", "crd", own["metadata"]["name"])
    _await_schema(admin, request.param)
    yield request.param
    admin.apply([published])


def test_claims_of_our_pods_are_accepted_and_of_node_group_labels_refused(
    provisioner: Provisioner,
    admin: Kubectl,
    journey: Callable[[str], None],
) -> None:
    labels = NodeLabels(provisioner, has_karpenter=True)
    context = replace(CONTEXT, node_labels=labels)
    claims = 0
    for engine in serving_spec.ENGINES:
        for capacity in ("on-demand", "spot", "any"):
            for requirements in _requirements(context, engine, capacity):
                assert _refusal(admin, provisioner, requirements) == ""
                claims += 1
    assert claims >= 2 * len(serving_spec.ENGINES)

    for operator, value in (("NotIn", "SPOT"), ("In", "SPOT")):
        requirement = {"key": _NODE_GROUP, "operator": operator, "values": [value]}
        refusal = _refusal(admin, provisioner, [requirement])
        assert ("is restricted" in refusal) is (provisioner is Provisioner.AUTO_MODE), refusal
    journey(f"{claims} NodeClaims of {provisioner}: accepted, as our pods require labels")


@pytest.mark.parametrize(
    "label",
    [
        *("karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-maker"),
        *("eks.amazonaws.com/instance-gpu-name", "eks.amazonaws.com/nodegroup"),
        *("karpenter.sh/capacity-type", "karpenter.sh/nodepool", "karpenter.sh/team"),
        *("node.karpenter.sh/team", "kubernetes.io/hostname", "topology.kubernetes.io/zone"),
        *("example.com/pool", "pool", "karpenter.k8s.aws/capacity-reservation-id"),
    ],
)
def test_the_server_refuses_the_labels_that_we_refuse(
    provisioner: Provisioner, admin: Kubectl, label: str
) -> None:
    requirement = {"key": label, "operator": "In", "values": ["a"]}

    is_refused = bool(_refusal(admin, provisioner, [requirement]))

    problem = NodeLabels(provisioner, has_karpenter=True).problem_with([label])
    # Nothing sets Karpenter's own labels in Auto Mode, so we refuse them there though its schema does not.
    is_of_another = provisioner is Provisioner.AUTO_MODE and label.startswith("karpenter.k8s.aws/")
    assert bool(problem) is (is_refused or is_of_another)


def test_every_pool_that_we_write_is_accepted(
    admin: Kubectl, journey: Callable[[str], None]
) -> None:
    """Reserved capacity, Balanced consolidation and the node classes of Auto Mode among them."""
    folder = kserve.named_folder()
    assert folder is not None
    kind = yaml.safe_load((folder / "nodepools.karpenter.sh.yaml").read_text())
    admin.apply([kind])
    admin.run("wait", "--for=condition=Established", "crd", kind["metadata"]["name"])
    pools = [
        pool_settings.manifest(f"pool-{number}", settings)
        for number, settings in enumerate(test_pool_settings.EVERY)
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": pools}

    made = admin.run(
        "create", "--dry-run=server", "--output=name", "-f", "-", stdin=json.dumps(listed)
    )

    assert len(made.split()) == len(pools)
    journey(f"{len(pools)} NodePools: accepted")


def _requirements(
    context: ManifestContext, engine: str, capacity: str
) -> Iterator[list[dict[str, Any]]]:
    """As Karpenter reads them: one list for each term, in case that it drops the first."""
    one = served(engine)
    placement = Placement(other_instance_types="g6.xlarge").replace(capacity=capacity)
    for placed in (one.spec, one.spec.replace(placement=placement)):
        spec = placed.replace(placement=placed.placement.replace(capacity=capacity))
        for pod in _pods(revision.build_own(context, replace(one, spec=spec))):
            selected = [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in (pod.get("nodeSelector") or {}).items()
            ]
            affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
            required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
            for term in required.get("nodeSelectorTerms") or [{"matchExpressions": []}]:
                yield [*selected, *term["matchExpressions"]]


def _pods(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _pods(item)
    elif isinstance(value, dict):
        if "tolerations" in value and ("nodeSelector" in value or "affinity" in value):
            yield value
        for item in value.values():
            yield from _pods(item)


def _refusal(admin: Kubectl, provisioner: Provisioner, requirements: list[dict[str, Any]]) -> str:
    """What the server says against a claim; empty if it takes it."""
    domain = _DOMAINS[provisioner]
    kind = "NodeClass" if provisioner is Provisioner.AUTO_MODE else "EC2NodeClass"
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "slipway-proof"},
        "spec": {
            "nodeClassRef": {"group": domain, "kind": kind, "name": "default"},
            "requirements": requirements,
        },
    }
    try:
        admin.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(claim))
    except AssertionError as error:
        return str(error)
    return ""


def _await_schema(admin: Kubectl, provisioner: Provisioner) -> None:
    """A changed schema is in force a moment after it was stored."""
    own = {"key": f"{_DOMAINS[provisioner]}/of-nobody", "operator": "Exists"}
    wait_until(
        lambda: "is restricted" in _refusal(admin, provisioner, [own]),
        lambda: admin.run("get", "crd", "nodeclaims.karpenter.sh"),
    )
