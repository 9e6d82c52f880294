"""Whether claims may tolerate taints of devices: the API server of an earlier Kubernetes drops that silently."""

from __future__ import annotations

import pytest

from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.services import device_class_probe
from tests.fleet.fakes import FakeKube

NAME = "device-tolerations"
V1 = {"resource.k8s.io": ["v1"]}


@pytest.mark.parametrize(
    ("kubernetes", "groups", "found"),
    [
        ("v1.36.3", V1, Feature(is_there=True, version="v1")),
        ("v1.37.0-eks-1a2b3c4", V1, Feature(is_there=True, version="v1")),
        ("v2.0.0", V1, Feature(is_there=True, version="v1")),
        ("v1.35.9", V1, Feature(is_there=False, why="Kubernetes 1.35 drops them")),
        ("", V1, Feature(None, why="its version is not a version of Kubernetes")),
        ("v1.36.3", {}, Feature(False, why="The cluster does not serve resource.k8s.io/v1")),
    ],
)
def test_it_follows_from_the_version(
    kube: FakeKube, kubernetes: str, groups: dict[str, list[str]], found: Feature
) -> None:
    assert device_class_probe.read(kube, groups, kubernetes=kubernetes)[NAME] == found  # type: ignore[arg-type]
