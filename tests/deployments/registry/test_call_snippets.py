from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.serving_spec import Scaling
from fleet.clusters.domain import knative_flags
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from tests import page
from tests.deployments.world import World

_KNATIVE: dict[str, Any] = {"scaling": Scaling(kind="knative"), "max_replicas": 2}


@pytest.fixture
def version(world: World) -> ModelVersion:
    tensors = (Tensor("x", "FP32", (-1, 4)),)
    signature = Signature(inputs=tensors, outputs=tensors).to_json()
    ModelVersion.objects.filter(pk=world.version1.pk).update(signature=signature)
    features = {name: Feature(is_there=True) for name in ("kubernetes", "kserve", "kserve-knative")}
    flags = dict.fromkeys(knative_flags.ALWAYS_NEEDED, "enabled")
    Cluster.objects.update(capabilities=Capabilities(features, knative_flags=flags).to_json())
    return world.version1


def calls(world: World, client: Client, version: ModelVersion) -> list[str]:
    client.force_login(world.viewer)
    shown = page.page(client.get(f"/vision/models/detector/{version.number}"))
    return [part.text for part in shown.all("summary") if "," in part.text]


def test_a_version_is_called_over_http_and_grpc(
    world: World, version: ModelVersion, client: Client
) -> None:
    expected = ["Python, tritonclient", "Python, gRPC", "curl, KServe v2", "Notebook, httpx"]
    assert calls(world, client, version) == expected

    world.serving()

    assert calls(world, client, version) == expected


def test_where_knative_serves_it_no_grpc_is_shown(
    world: World, version: ModelVersion, client: Client
) -> None:
    world.serving(**_KNATIVE)

    assert calls(world, client, version) == [
        "Python, tritonclient",
        "curl, KServe v2",
        "Notebook, httpx",
    ]
