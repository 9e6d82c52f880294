"""Why a setting is off, before anyone chooses it."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.spec.domain import serving_spec
from deployments.spec.domain.cluster_support import engine_reason, missing, reasons
from deployments.spec.domain.serving_spec import Llm, Network, Scaling, ServingSpec, Storage
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS

ALL = Capabilities(features={name: Feature(True) for name in FEATURE_DESCRIPTIONS})
NONE = Capabilities(
    features={name: Feature(False) for name in FEATURE_DESCRIPTIONS} | {"kserve": Feature(True)}
)


def test_on_a_cluster_with_everything_only_the_engines_own_limits_are_reported() -> None:
    problems = reasons(serving_spec.KSERVE_TRITON, "keda", ALL)

    assert set(problems) == {"llm", "network.team_address"}


def test_what_is_not_installed_is_off_with_its_name() -> None:
    problems = reasons(serving_spec.KSERVE_TRITON, "", NONE)

    assert problems["scaling.kind=keda"].startswith("KEDA is not installed")
    assert problems["scaling.can_scale_to_zero"] == problems["scaling.kind=keda"]
    for name in (
        "office_hours",
        "sqs",
        "kafka",
        "redis",
        "max_latency_ms",
        "max_gpu_memory_percent",
    ):
        assert problems[f"scaling.{name}"] == "it needs KEDA."
    assert problems["network.strict_mtls"].startswith("Istio is not installed")
    assert problems["storage.model_cache=cluster"].startswith("LocalModelCache is not installed")
    assert "scaling.kind=fixed" not in problems


def test_unprobed_features_stay_available_but_keys_of_callers() -> None:
    problems = reasons(serving_spec.TRITON, "keda", Capabilities.from_json({}))

    assert set(problems) == {
        "scaling.kind=knative",
        "storage.model_cache=cluster",
        # A gateway that ignores keys would serve everyone.
        "network.access=keys",
        "network.access=jwt",
        "network.team_address",
        "llm",
    }


@pytest.mark.parametrize("engine", serving_spec.LLM_ENGINES)
def test_a_language_engine_takes_no_batching_of_tritons(engine: str) -> None:
    problems = reasons(engine, "", ALL)

    assert {"batching", "instances_per_gpu", "warm_up"} <= set(problems)
    assert "llm" not in problems


def test_a_spec_names_each_setting_that_the_cluster_lacks() -> None:
    spec = ServingSpec(
        engine=serving_spec.KSERVE_TRITON,
        instance_type="g5.xlarge",
        max_replicas=2,
        scaling=Scaling(kind="keda"),
        storage=Storage(model_cache="cluster"),
        network=Network(access="open", strict_mtls=True),
    )

    assert missing(spec, ALL) == []
    assert missing(spec, Capabilities.from_json({})) == [], "what is not known refuses nothing"
    assert [(problem.path, problem.is_blocking) for problem in missing(spec, NONE)] == [
        ("scaling.kind", True),
        ("storage.model_cache", True),
        ("network.strict_mtls", True),
    ]


def test_scaling_by_cpu_without_metrics_is_a_warning() -> None:
    spec = ServingSpec(
        engine=serving_spec.TRITON,
        instance_type="g5.xlarge",
        scaling=Scaling(kind=serving_spec.HPA),
        network=Network(access="open"),
    )

    (problems,) = missing(spec, NONE)

    assert (problems.path, problems.is_blocking) == ("scaling.kind", False)


@pytest.mark.parametrize("capabilities", [NONE, Capabilities.from_json({})])
def test_keys_need_a_gateway_that_is_known_to_check_them(capabilities: Capabilities) -> None:
    spec = ServingSpec(engine=serving_spec.TRITON, instance_type="g5.xlarge")

    (problem,) = missing(spec, capabilities)

    assert (problem.path, problem.is_blocking) == ("network.access", True)
    assert problem.fix == (
        "Set network.access to open if anyone who reaches the gateway may call it, or ask a platform "
        "admin for Envoy Gateway 1.5 or newer, or Istio 1.22 or newer."
    )
    assert missing(spec, ALL) == []


def test_an_engine_is_off_only_where_it_is_known_to_be_missing() -> None:
    without = Capabilities(features={"kubernetes": Feature(True), "kserve": Feature(False)})

    assert engine_reason(serving_spec.KSERVE_TRITON, without).startswith("KServe is not installed")
    assert engine_reason(serving_spec.KSERVE_TRITON, Capabilities.from_json({})) == ""
    assert engine_reason(serving_spec.TRITON, without) == ""


def test_nodes_of_an_llm_service_need_leader_worker_sets_and_those_of_kserve_vllm_do_not() -> None:
    features = {**ALL.features, "leader-worker-set": Feature(False)}
    without = Capabilities(features=features)
    llm = Llm(artifact="oci://registry/m:1", nodes=2)

    def problems(engine: Any) -> list[tuple[str, str]]:
        spec = ServingSpec(engine=engine, instance_type="g5.xlarge", llm=llm)
        return [(item.path, item.message) for item in missing(spec, without)]

    assert problems(serving_spec.LLM_SERVICE) == [
        (
            "llm.nodes",
            "LeaderWorkerSet is not installed. It is needed for replicas of an LLMInferenceService "
            "over several nodes.",
        )
    ]
    assert problems(serving_spec.KSERVE_VLLM) == []
