"""Which labels pods may require of nodes, by what starts the nodes of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fleet.clusters.domain import provisioner
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.provisioner import NodeLabels, Provisioner
from fleet.clusters.services import capabilities
from fleet.gpus.domain import capacity_types
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

KARPENTER = ("karpenter.sh/capacity-type", "spot")
GROUPS = ("eks.amazonaws.com/capacityType", "SPOT")
SPOT_GROUP = {"eks.amazonaws.com/capacityType": "SPOT"}


@pytest.mark.parametrize(
    ("groups", "nodes", "classes", "expected"),
    [
        ([], [], [], NodeLabels(Provisioner.EKS)),
        (["karpenter.sh", "karpenter.k8s.aws"], [], [], NodeLabels(Provisioner.EKS, True)),
        (
            ["karpenter.sh", "karpenter.k8s.aws"],
            [SPOT_GROUP],
            [],
            NodeLabels(Provisioner.EKS, True),
        ),
        (["karpenter.sh", "eks.amazonaws.com"], [], [], NodeLabels(Provisioner.AUTO_MODE, True)),
        # The pools say it where the group is not listed.
        (["karpenter.sh"], [], ["eks.amazonaws.com"], NodeLabels(Provisioner.AUTO_MODE, True)),
        (
            ["karpenter.sh", "eks.amazonaws.com"],
            [SPOT_GROUP],
            [],
            NodeLabels(Provisioner.AUTO_MODE, True, True),
        ),
        # A controller of load balancers serves this group on any cluster.
        (["eks.amazonaws.com"], [], [], NodeLabels(Provisioner.EKS)),
        (
            ["karpenter.sh", "karpenter.azure.com"],
            [],
            [],
            NodeLabels(Provisioner.OTHER_KARPENTER, True),
        ),
        ([], [{"cloud.google.com/gke-nodepool": "gpu"}], [], NodeLabels(Provisioner.GKE)),
        ([], [{"kubernetes.azure.com/agentpool": "gpu"}], [], NodeLabels(Provisioner.AKS)),
    ],
)
def test_the_provisioner_is_probed(
    groups: list[str], nodes: list[Mapping[str, str]], classes: list[str], expected: NodeLabels
) -> None:
    known = provisioner.read(groups, nodes, classes)

    assert known == expected
    assert NodeLabels.from_json(known.to_json()) == known


@pytest.mark.parametrize(
    ("name", "spot"),
    [
        (Provisioner.EKS, (KARPENTER, GROUPS)),
        (Provisioner.AUTO_MODE, (KARPENTER,)),
        (Provisioner.OTHER_KARPENTER, (KARPENTER,)),
        (Provisioner.GKE, (("cloud.google.com/gke-spot", "true"),)),
        (Provisioner.AKS, (("kubernetes.azure.com/scalesetpriority", "spot"),)),
    ],
)
def test_spot_nodes_are_known_by_the_labels_that_it_sets(
    name: Provisioner, spot: tuple[tuple[str, str], ...]
) -> None:
    assert NodeLabels(name).spot == spot
    assert all(capacity_types.read_labels({key: value}) == "spot" for key, value in spot)
    assert NodeLabels(name).problem_with([key for key, _ in spot]) == ""


@pytest.mark.parametrize("has_karpenter", [True, False])
@pytest.mark.parametrize(
    ("name", "label", "is_refused"),
    [
        (Provisioner.EKS, "karpenter.k8s.aws/instance-gpu-name", False),
        (Provisioner.EKS, "karpenter.k8s.aws/instance-gpu-maker", True),
        (Provisioner.EKS, "karpenter.sh/nodepool", False),
        (Provisioner.EKS, "karpenter.sh/team", True),
        (Provisioner.EKS, "node.karpenter.sh/team", True),
        (Provisioner.EKS, "kubernetes.io/hostname", True),
        (Provisioner.EKS, "eks.amazonaws.com/nodegroup", False),
        (Provisioner.EKS, "topology.kubernetes.io/zone", False),
        (Provisioner.EKS, "example.com/pool", False),
        (Provisioner.EKS, "pool", False),
        (Provisioner.AUTO_MODE, "eks.amazonaws.com/capacityType", True),
        (Provisioner.AUTO_MODE, "eks.amazonaws.com/nodegroup", True),
        (Provisioner.AUTO_MODE, "eks.amazonaws.com/instance-gpu-name", False),
        (Provisioner.AUTO_MODE, "karpenter.k8s.aws/instance-gpu-name", True),
        (Provisioner.AUTO_MODE, "karpenter.sh/capacity-type", False),
    ],
)
def test_labels_that_it_refuses_are_named(
    name: Provisioner, label: str, is_refused: bool, has_karpenter: bool
) -> None:
    problem = NodeLabels(name, has_karpenter).problem_with(["example.com/other", label])

    assert (label in problem) is (is_refused and has_karpenter)
    assert bool(problem) is (is_refused and has_karpenter)


@pytest.mark.django_db
@pytest.mark.parametrize("may_list_nodes", [True, False])
def test_a_probe_of_a_cluster_in_auto_mode(
    kube: FakeKube, cluster: Cluster, may_list_nodes: bool
) -> None:
    kube.api_groups |= {"karpenter.sh": ["v1"], "eks.amazonaws.com": ["v1"]}
    if not may_list_nodes:
        kube.forbidden.add("nodes")

    capabilities.probe(cluster_id=cluster.pk)

    known = Capabilities.from_json(Cluster.objects.get().capabilities)
    assert known.node_labels == NodeLabels(Provisioner.AUTO_MODE, has_karpenter=True)
    assert (known.gpu_offers is None) is not may_list_nodes
