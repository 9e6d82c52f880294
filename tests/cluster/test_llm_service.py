"""LLMInferenceServices of the portal under KServe's own controller: what it makes of them, and under
which names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import pytest

from deployments.delivery.domain import progress
from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import WORKLOAD_LABEL, ManifestContext
from tests.cluster.kubectl import Kubectl
from tests.cluster.llm_world import World, has, language_model, until
from tests.cluster.nodes import ready_node

_POOLS: Final = "inferencepools.inference.networking.k8s.io"


@pytest.fixture
def world(cluster_id: int, context: ManifestContext, admin: Kubectl) -> World:
    return World(cluster_id, context, admin)


def test_the_route_names_what_kserve_makes(world: World, journey: Callable[[str], None]) -> None:
    served = {number: language_model(number, prefix_routing=True) for number in (1, 2)}
    for one in served.values():
        world.push(one)

    def route(*weights: int) -> dict[str, Any]:
        numbered = enumerate(weights, start=1)
        return world.apply_route(
            [
                http_route.backend_for(number, served[number].spec, weight, model="detector")
                for number, weight in numbered
            ]
        )

    for stored in (route(100, 0), route(70, 30), route(0, 100)):
        references = [ref for rule in stored["spec"]["rules"] for ref in rule["backendRefs"]]
        for kind, name in {(ref["kind"], ref["name"]) for ref in references}:
            found = world.wait_for(_POOLS if kind == "InferencePool" else "services", name)
            if kind == "InferencePool":
                assert found["spec"]["targetPorts"] == [{"number": 8000}]
                assert world.wait_for("services", found["spec"]["endpointPickerRef"]["name"])
    assert http_route.weights_in(stored) == {"detector-r2-kserve-workload-svc": 100}
    journey("llm-inference-service: KServe makes pools and endpoint pickers; the route names them")


def test_the_network_policy_selects_the_endpoint_picker_and_the_pool_the_models(
    world: World,
) -> None:
    served = language_model(1, prefix_routing=True)
    world.push(served)
    pickers = world.wait_for("deployments", "detector-r1-kserve-router-scheduler")
    models = world.wait_for("deployments", "detector-r1-kserve")
    pool = world.wait_for(_POOLS, "detector-r1-inference-pool")
    policies = {one["metadata"]["name"]: one["spec"] for one in world.list_all("networkpolicies")}

    def selects(selector: dict[str, str], workload: dict[str, Any]) -> bool:
        return has(workload["spec"]["template"]["metadata"]["labels"], selector)

    of_picker = policies["detector-r1-picker"]["podSelector"]["matchLabels"]
    of_models = policies["detector-r1"]["podSelector"]["matchLabels"]
    assert [selects(of_picker, one) for one in (pickers, models)] == [True, False]
    assert [selects(of_models, one) for one in (pickers, models)] == [False, True]
    assert selects(pool["spec"]["selector"]["matchLabels"], models)
    # The picker's pod is admitted in a namespace that enforces Pod Security restricted.
    until(
        lambda: any(has(pod["metadata"]["labels"], of_picker) for pod in world.list_all("pods")),
        lambda: pickers["status"],
    )


def test_a_revision_is_ready_before_any_gateway_has_accepted_its_pool(
    world: World, admin: Kubectl
) -> None:
    world.push(language_model(1, prefix_routing=True))

    def observed() -> progress.WorkloadProgress:
        service = world.service("detector-r1")
        labels = {WORKLOAD_LABEL: "detector-r1"}
        pods = [pod for pod in world.list_all("pods") if has(pod["metadata"]["labels"], labels)]
        return progress.derive_workload_progress(workload=service, pods=pods, desired_pods=1)

    for name in ("detector-r1-kserve", "detector-r1-kserve-router-scheduler"):
        world.wait_for("deployments", name)
    assert not observed().is_ready
    with ready_node(admin, f"gpu-{world.context.namespace}"[:60]):
        until(world.start_pods, lambda: world.list_all("pods"))
        until(lambda: observed().is_ready, lambda: world.service("detector-r1")["status"])

    conditions = {one["type"]: one for one in world.service("detector-r1")["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["InferencePoolReady"]["reason"] == "WaitingForGateway"


def test_kserve_computes_the_drain_from_the_grace(
    world: World, journey: Callable[[str], None]
) -> None:
    """Never less than KServe's own 60 seconds, unless somebody stated less."""
    stated = {1: 600, 2: 45}
    for number, seconds in stated.items():
        one = language_model(number)
        spec = one.spec.replace(termination_grace_seconds=seconds)
        world.push(dataclasses.replace(one, spec=spec))

    for number, seconds in stated.items():
        pod = world.wait_for("deployments", f"detector-r{number}-kserve")["spec"]["template"][
            "spec"
        ]
        (main,) = [item for item in pod["containers"] if item["name"] == "main"]
        script = " ".join([*main.get("command", ()), *main.get("args", ())])
        assert pod["terminationGracePeriodSeconds"] == seconds
        assert main["lifecycle"]["preStop"]["exec"]["command"] == ["/bin/sleep", "15"]
        # Five seconds less than the preStop hook leaves, for the server to exit.
        assert f"--shutdown-timeout {seconds - 20} " in f"{script} ".replace('"', " ")
    journey("llm-inference-service: KServe's drain is the portal's grace, less its preStop hook")
