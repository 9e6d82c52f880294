"""A language model on Neuron devices: KServe's controllers make its pod, the real scheduler finds the devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

from deployments.manifests.domain import resource_limits, revision
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.services import objects
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.test_scheduling import pods_of
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served

DEVICE: Final = "aws.amazon.com/neuron"
_OFFERED: Final = {DEVICE: "6", "aws.amazon.com/neuroncore": "12"}
_TAINT: Final = {"key": DEVICE, "value": "true", "effect": "NoSchedule"}
_SPEC: Final[dict[str, Any]] = {
    "engine": "kserve-vllm",
    "instance_type": "inf2.24xlarge",
    "gpu_resource": DEVICE,
    "gpus": 4,
    "image": "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:1",
    "llm": {
        "hugging_face_id": "org/model",
        "tensor_parallel": 4,
        "max_model_len": 4096,
        "max_num_seqs": 4,
        "prefix_caching": False,
    },
}


def test_a_pod_is_placed_by_its_devices_on_a_tainted_node(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    one = dataclasses.replace(served(serving_spec.KSERVE_VLLM), spec=ServingSpec.from_json(_SPEC))
    manifests = [*revision.build_shared(context, one), *revision.build_own(context, one)]
    name = f"inf-{context.namespace}"[:60]
    with ready_node(
        admin, name, instance_type="inf2.24xlarge", accelerators=_OFFERED, taints=[_TAINT]
    ) as node:
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        objects.apply(
            cluster_id=cluster_id, manifests=resource_limits.limit_namespace(context, quota_gpus=4)
        )
        wait_until(
            lambda: (
                [pod["spec"].get("nodeName") for pod in pods_of(cluster_id, context.namespace)]
                == [node]
            ),
            lambda: admin.run("get", "events,pods", f"--namespace={context.namespace}"),
        )
        (pod,) = pods_of(cluster_id, context.namespace)

    (server,) = pod["spec"]["containers"]
    assert server["resources"]["limits"][DEVICE] == "4"
    assert "--tensor-parallel-size=8" in server["args"]
    assert server["image"] == _SPEC["image"]
    journey("kserve-vllm on Neuron devices: admitted, scheduled on a tainted node of inf2")
