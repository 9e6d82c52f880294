"""The whole way of a model on a real control plane: it is uploaded and examined, real KServe or the
Deployment controller makes its pods, real Triton answers HTTP and gRPC through real Envoy, a canary is
promoted, and nothing is left when the deployment is retired.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.delivery.services import live_objects
from deployments.spec.domain.engines import KSERVE_TRITON, ONNX_ENGINES, Engine
from deployments.spec.domain.serving_spec import Network, ServingSpec
from fleet.models import Cluster
from tests.cluster.agents import Agents, agents, served_cluster
from tests.cluster.kubectl import Kubectl
from tests.cluster.scene import Scene
from tests.contract import adder

__all__ = ["agents", "served_cluster"]


@pytest.mark.parametrize("engine", ONNX_ENGINES)
def test_a_model_is_deployed_replaced_by_a_canary_and_retired(
    served_cluster: Cluster,
    agents: Agents,
    namespace: str,
    admin: Kubectl,
    client: Client,
    journey: Callable[[str], None],
    engine: Engine,
) -> None:
    scene = Scene(served_cluster, agents, namespace, admin, client)
    one, two = (scene.upload("adder", number) for number in (1, 2))
    spec = ServingSpec(
        engine=engine,
        instance_type="g5.xlarge",
        cpu="1",
        memory="2Gi",
        network=Network(access="open"),
    )

    url = scene.deploy(one, "adder", spec)

    scene.until(lambda: adder.answers(url, 5)[2.0] == 5)
    scene.until(lambda: adder.grpc_answers(url, 5)[2.0] == 5)
    (pod,) = scene.pods()
    is_of_kserve = "serving.kserve.io/inferenceservice" in pod["metadata"]["labels"]
    assert is_of_kserve is (engine == KSERVE_TRITON)
    scene.read_pods()
    log = live_objects.read_log(
        actor=scene.member,
        deployment_id=scene.deployment().pk,
        pod=pod["metadata"]["name"],
        lines=200,
    )
    assert "successfully loaded 'adder'" in log.text, log
    labels = admin.get("namespace", namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    scene.start_canary(two)
    scene.until(lambda: adder.answers(url, 20)[3.0] > 0)
    for answers in (adder.answers(url, 200), adder.grpc_answers(url, 200)):
        assert answers[2.0] + answers[3.0] == 200
        assert 60 < answers[3.0] < 140, answers
    scene.promote(lambda: (adder.answers(url, 10), adder.grpc_answers(url, 10)))
    assert adder.answers(url, 20)[3.0] == adder.grpc_answers(url, 20)[3.0] == 20

    scene.retire(url, "/v2/health/ready")
    journey(
        f"{engine}: uploaded, examined, approved, served by Triton through Envoy over HTTP and gRPC, "
        "canary promoted, retired"
    )
