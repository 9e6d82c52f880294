"""Weights in an image, as KServe brings them into a pod: what its container may, and what preflight says."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.preflight.services import image_weights
from deployments.spec.domain.engines import KSERVE_VLLM
from deployments.spec.domain.serving_spec import Llm
from fleet.clusters.services import capabilities
from fleet.kube.services import objects
from tests.cluster.kubectl import Kubectl
from tests.cluster.test_scheduling import replica_failures
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served

_CONFIG = ("configmap", "inferenceservice-config")
_NAMESPACE = "--namespace=kserve"


@pytest.fixture
def configure(admin: Kubectl) -> Iterator[Callable[[str], None]]:
    """Set how KServe brings images into pods, until the end of the test."""
    shipped = admin.get(*_CONFIG, _NAMESPACE)["data"]["storageInitializer"]

    def write(settings: str) -> None:
        data = {"storageInitializer": settings}
        admin.patch(*_CONFIG, _NAMESPACE, patch={"data": data})

    yield lambda mode: write(json.dumps({**json.loads(shipped), "ociModelMode": mode}))
    write(shipped)


def _served() -> ServedRevision:
    one = served(KSERVE_VLLM)
    llm = Llm(artifact="oci://registry.example/chat:1")
    return dataclasses.replace(one, spec=one.spec.replace(llm=llm))


@pytest.mark.parametrize(("mode", "is_admitted"), [("modelcar", False), ("native", True)])
def test_preflight_says_what_the_namespace_does_with_its_pods(
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    configure: Callable[[str], None],
    mode: str,
    is_admitted: bool,
) -> None:
    configure(mode)
    context = dataclasses.replace(context, vllm_image="vllm/vllm-openai:v0.25.0")
    one = _served()
    offered = capabilities.probe(cluster_id=cluster_id)

    (check,) = image_weights.check(context, one, offered, cluster="here")
    objects.apply(
        cluster_id=cluster_id,
        manifests=[*revision.build_shared(context, one), *revision.build_own(context, one)],
    )

    where = f"--namespace={context.namespace}"

    def outcome() -> list[Any]:
        pods = admin.get("pods", where)["items"]
        return pods or replica_failures(cluster_id, context.namespace)

    wait_until(lambda: bool(outcome()), lambda: admin.run("get", "events,pods", where))
    pods = admin.get("pods", where)["items"]
    assert check.ok is is_admitted
    assert len(pods) == int(is_admitted)
    if is_admitted:
        assert "image" in {kind for volume in pods[0]["spec"]["volumes"] for kind in volume}
    else:
        assert "violates PodSecurity" in str(outcome())
        assert "modelcar" in str(outcome())
