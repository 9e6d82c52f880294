from __future__ import annotations

import json

import pytest

from fleet.clusters.domain.capabilities import FEATURES, Capabilities, Feature, GpuOffer, Offer
from fleet.clusters.domain.capability_descriptions import ENGINE_NEEDS

ALL = {name: Feature(True, "v1") for name in FEATURES}
MIG = GpuOffer("nvidia.com/mig-1g.10gb", "NVIDIA-H100", 10240, nodes=2, units=14, sharing="mig")


def with_(**changed: Feature) -> Capabilities:
    named = {name.replace("_", "-"): feature for name, feature in changed.items()}
    return Capabilities(features=ALL | named, gpu_offers=(MIG,))


def test_probed_capabilities_survive_the_database() -> None:
    capabilities = with_(keda=Feature(None, why="It is forbidden to read."))

    assert Capabilities.from_json(json.loads(json.dumps(capabilities.to_json()))) == capabilities


def test_json_keeps_engines_and_notes_for_those_who_read_only_them() -> None:
    raw = with_(kserve=Feature(False)).to_json()

    assert raw["engines"] == ["triton", "triton-vllm", "llm-inference-service"]
    assert raw["notes"] == [
        "KServe is not installed. It is needed for the KServe engines; the plain Triton engines work without it."
    ]


def test_a_cluster_never_probed_has_no_known_capability() -> None:
    capabilities = Capabilities.from_json({})

    assert capabilities.offers_engine("triton") == Offer(None, _not_known("Kubernetes"))
    assert capabilities.offers("keda") == Offer(None, _not_known("KEDA"))
    assert capabilities.offers("nvidia.com/gpu") == Offer(
        None, "The capabilities of the cluster have not been checked yet."
    )
    assert capabilities.engines is None


def _not_known(title: str) -> str:
    return f"Could not check {title}. The capabilities of the cluster have not been checked yet."


@pytest.mark.parametrize("engine", ENGINE_NEEDS)
def test_every_engine_is_offered_where_everything_is_there(engine: str) -> None:
    assert with_().offers_engine(engine) == Offer(True)


def test_an_undescribed_engine_is_not_known() -> None:
    assert with_().offers_engine("onnx-next").ok is None


def test_not_there_beats_not_known() -> None:
    capabilities = with_(kubernetes=Feature(None, why="?"), kserve=Feature(False))

    assert capabilities.offers_engine("kserve-vllm").ok is False


def test_scaling_to_zero_works_in_either_way() -> None:
    neither = with_(keda=Feature(False), kserve_knative=Feature(None, why="Forbidden."))

    assert with_(keda=Feature(False)).offers("scale-to-zero") == Offer(True)
    assert neither.offers("scale-to-zero") == Offer(
        None, "Could not check KServe in Knative mode. Forbidden."
    )


def test_a_gpu_share_is_offered_only_where_nodes_have_it() -> None:
    fixed = with_(karpenter=Feature(False))

    assert fixed.offers("nvidia.com/mig-1g.10gb") == Offer(True)
    assert fixed.offers("nvidia.com/gpu") == Offer(False, "No node offers nvidia.com/gpu.")
    assert with_().offers("nvidia.com/gpu").ok is None


def test_no_gpus_and_gpus_not_known_are_distinguished() -> None:
    assert Capabilities(features=ALL, gpu_offers=()).notes == ["No running node offers GPUs."]
    unknown = Capabilities(features=ALL, gpu_offers=None, gpus_why="Nodes may not be listed.")
    assert unknown.notes == ["Nodes may not be listed."]
