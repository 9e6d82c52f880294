"""The DaemonSet that keeps a revision's images on nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.delivery.services import observe
from deployments.manifests.domain import metadata, revision
from deployments.manifests.domain.metadata import Manifest, ServedRevision
from deployments.spec.domain import cluster_support
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from portal.core.definitions import Rejected
from tests.deployments.manifests.test_manifests import CONTEXT

_CONTEXT = replace(
    CONTEXT, vllm_image="vllm:1", sglang_image="sglang:1", tensorrt_llm_image="trt:1"
)
_WEIGHTS = {"llm": {"hugging_face_id": "org/model"}}


def _made(engine: str = "triton", **spec: Any) -> dict[str, Manifest]:
    data = {"engine": engine, "instance_type": "g5.xlarge", **spec}
    made = ServingSpec.from_json(
        {**data, "placement": {"pre_pull": True, **data.get("placement", {})}}
    )
    served = ServedRevision(1, "detector", "detector:1", "ab" * 32, "s3://b/p/", made)
    return {manifest["kind"]: manifest for manifest in revision.build_own(_CONTEXT, served)}


def _images(made: dict[str, Manifest]) -> dict[str, str]:
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    return {container["name"]: container["image"] for container in pod["containers"]}


@pytest.mark.parametrize(
    ("engine", "spec", "server"),
    [
        ("triton", {}, CONTEXT.triton_image),
        ("kserve-triton", {}, CONTEXT.triton_image),
        ("kserve-vllm", _WEIGHTS, "vllm:1"),
        ("kserve-sglang", _WEIGHTS, "sglang:1"),
        ("kserve-tensorrt-llm", _WEIGHTS, "trt:1"),
        ("triton", {"image": "registry.example/server:2"}, "registry.example/server:2"),
    ],
)
def test_it_has_the_images_of_the_revisions_pods(
    engine: str, spec: dict[str, Any], server: str
) -> None:
    made = _made(engine, **spec)

    assert _images(made) == {"server": server, "download": CONTEXT.storage_image}


def test_it_runs_where_the_revision_may_run_and_takes_no_gpu() -> None:
    made = _made(placement={"capacity": "spot", "priority_class": "high"})
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    own = made["Deployment"]["spec"]["template"]["spec"]

    for name in ("nodeSelector", "tolerations", "affinity", "securityContext"):
        assert pod[name] == own[name]
    assert {"priorityClassName", "topologySpreadConstraints"}.isdisjoint(pod)
    assert [container["resources"]["limits"] for container in pod["containers"]] == [
        {"cpu": "10m", "memory": "16Mi"}
    ] * 2


def test_its_pods_are_none_of_the_revisions() -> None:
    """Pods are counted, routed to and measured by these labels."""
    made = _made()
    labels = made["DaemonSet"]["spec"]["template"]["metadata"]["labels"]

    assert metadata.is_of_revision(made["DaemonSet"])
    assert observe.number_of({"metadata": {"labels": labels}}) == 0
    assert {metadata.WORKLOAD_LABEL, metadata.DEPLOYMENT_ID_LABEL}.isdisjoint(labels)
    assert made["DaemonSet"]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_it_is_off_unless_chosen() -> None:
    assert "DaemonSet" not in _made(placement={"pre_pull": False})


@pytest.mark.parametrize(
    "spec",
    [
        {"engine": "llm-inference-service", **_WEIGHTS},
        {"engine": "kserve-vllm", "llm": {"artifact": "pvc://a/b", "nodes": 2}},
    ],
)
def test_it_is_refused_where_kserve_names_the_image(spec: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as refused:
        ServingSpec.from_json(
            {"instance_type": "g5.xlarge", "placement": {"pre_pull": True}, **spec}
        )

    assert list(refused.value.fields) == ["placement.pre_pull"]


def test_a_cluster_without_daemon_sets_does_not_offer_it() -> None:
    why = "The embedded local cluster runs no DaemonSets"
    capabilities = Capabilities({"daemon-sets": Feature(is_there=False, why=why)})

    reasons = cluster_support.reasons("triton", "", capabilities)

    assert reasons["placement.pre_pull"].startswith(why)
