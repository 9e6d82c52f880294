"""How KServe brings weights in an image into a pod is read from its configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.clusters.test_capabilities import controller
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db
_OFF = Feature(is_there=False, why="KServe has images of weights switched off")


def probed(kube: FakeKube, cluster: Cluster, release: str, settings: dict[str, Any]) -> Feature:
    kube.put(
        controller("kserve", "kserve-controller-manager", f"kserve/controller:{release}"),
        {
            "kind": "ConfigMap",
            "metadata": {"namespace": "kserve", "name": "inferenceservice-config"},
            "data": {"storageInitializer": json.dumps(settings)},
        },
    )
    return read(cluster)


def read(cluster: Cluster) -> Feature:
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities).feature("image-weights")


@pytest.mark.parametrize(
    ("release", "settings", "expected"),
    [
        ("v0.16.0", {"enableModelcar": True}, Feature(is_there=True, version="modelcar")),
        ("v0.16.0", {"enableModelcar": False}, _OFF),
        ("v0.19.0", {"ociModelMode": "native"}, _OFF),
        ("v0.19.0", {"enableOciModelSupport": True}, _OFF),
        ("v0.20.0", {"ociModelMode": "native"}, Feature(is_there=True, version="native")),
        ("v0.20.0", {"enableOciModelSupport": True}, Feature(is_there=True, version="modelcar")),
        ("v0.20.0", {}, _OFF),
        ("latest", {"ociModelMode": "native"}, Feature(is_there=True, version="native")),
    ],
)
def test_the_mode_is_that_of_the_release(
    kube: FakeKube, cluster: Cluster, release: str, settings: dict[str, Any], expected: Feature
) -> None:
    assert probed(kube, cluster, release, settings) == expected


def test_without_its_configuration_it_is_not_known(kube: FakeKube, cluster: Cluster) -> None:
    assert read(cluster) == Feature(
        None, why="The portal cannot read ConfigMap inferenceservice-config of kserve."
    )


def test_without_kserve_there_is_none(kube: FakeKube, cluster: Cluster) -> None:
    del kube.api_groups["serving.kserve.io"]

    assert read(cluster) == Feature(is_there=False, why="KServe is not installed")
