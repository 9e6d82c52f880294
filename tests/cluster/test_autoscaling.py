"""The HPA that the portal writes, followed by the real controller: a queue moves in a real Prometheus, and the
number of replicas moves with it. Between the two is an adapter of the test, in place of prometheus-adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain import serving_spec
from fleet.kube.services import objects
from tests.cluster import external_metrics
from tests.cluster.kubectl import Kubectl
from tests.cluster.scaled import revision_with, spec_scaled_by, wait_for_replicas
from tests.fixtures.prometheus import RealPrometheus


@pytest.fixture
def adapter(admin: Kubectl, tmp_path: Path, prometheus: RealPrometheus) -> Iterator[None]:
    with external_metrics.serving(admin, tmp_path, prometheus.value):
        yield


@pytest.mark.parametrize(
    ("engine", "name", "target"),
    [
        (serving_spec.TRITON, "nv_inference_pending_request_count", "detector-r1"),
        (serving_spec.KSERVE_VLLM, "vllm:num_requests_waiting", "detector-r1-predictor"),
        (serving_spec.KSERVE_SGLANG, "sglang:num_queue_reqs", "detector-r1-predictor"),
    ],
)
@pytest.mark.usefixtures("adapter")
def test_an_hpa_adds_a_replica_for_every_five_waiting_requests_and_removes_them_again(
    engine: str,
    name: str,
    target: str,
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    prometheus: RealPrometheus,
    journey: Callable[[str], None],
) -> None:
    def wait_for(count: int) -> None:
        wait_for_replicas(admin, context.namespace, count, target=target)

    series = f'{name}{{namespace="{context.namespace}",service="{target}",pod="%s"}}'
    prometheus.show({series % "a": 0, series % "b": 0})
    spec = spec_scaled_by({"kind": "hpa", "metric": "queue", "target": 5}, engine)
    objects.apply(cluster_id=cluster_id, manifests=revision_with(context, spec))
    wait_for(1)

    prometheus.show({series % "a": 9, series % "b": 3})
    wait_for(3)
    prometheus.show({series % "a": 0, series % "b": 0})
    wait_for(1)

    journey(f"HPA on the external metric {name}: a queue of 12 made 3 replicas, an empty one 1")
