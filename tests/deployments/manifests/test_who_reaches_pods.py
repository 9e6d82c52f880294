"""Who reaches the pods of each engine: nobody in the cluster calls a model without the gateway."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.manifests.domain import network
from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.selectors import rendering
from deployments.spec.domain import serving_spec
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.monitor_selection import PrometheusSelection
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.models import Cluster
from tests.deployments.manifests.network_evaluation import Peer, admits
from tests.deployments.manifests.test_namespace_policies import _case

_API_SERVER = Peer(address="10.0.9.4")
_PROMETHEUS = Peer("observability", {"app": "prometheus"})
_KNOWN = ManifestContext(
    *("vision", "vision", "detector", 1, False, "gw", "gw", "i", "s"),
    vllm_image="v",
    control_plane_cidrs=("10.0.9.4/32",),
    metrics_namespaces=("observability",),
)
# What answers requests in a pod of each engine.
_APIS = {serving_spec.LLM_SERVICE: 8000}
_PORTS = (8000, 8001, 8002, 8080, 9000, 9090)
_STRANGERS = {
    "a pod of another team": Peer("nlp", {"slipway.dev/workload": "detector-r1"}),
    "a pod of the platform": Peer("default"),
    "a pod that calls itself Prometheus": Peer("nlp", {"app": "prometheus"}),
    "a namespace with a similar name": Peer("observability-2"),
    "a node": Peer(address="10.0.9.5"),
    "somebody outside": Peer(address="203.0.113.9"),
}


@pytest.mark.parametrize("who", _STRANGERS)
@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_nobody_else_reaches_any_port(engine: str, who: str) -> None:
    policy = network.build_workload_policy(_KNOWN, _case(engine))

    assert not [port for port in _PORTS if admits(policy, _STRANGERS[who], port)]


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_prometheus_reaches_metrics_and_the_api_server_requests_too(engine: str) -> None:
    served = _case(engine)
    policy = network.build_workload_policy(_KNOWN, served)
    metrics, api = network.metrics_port(served), _APIS.get(engine, 8080)

    assert [port for port in _PORTS if admits(policy, _PROMETHEUS, port)] == [metrics]
    reached = [port for port in _PORTS if admits(policy, _API_SERVER, port)]
    assert reached == sorted({metrics, api})
    for friend in (Peer("vision"), Peer("gw")):
        assert admits(policy, friend, api)


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_an_unknown_api_server_opens_no_port_that_answers_requests(engine: str) -> None:
    served = _case(engine)
    policy = network.build_workload_policy(replace(_KNOWN, control_plane_cidrs=()), served)
    nobody = network.build_workload_policy(
        replace(_KNOWN, control_plane_cidrs=(), metrics_namespaces=()), served
    )
    has_own_port = network.metrics_port(served) == 8002

    for stranger in _STRANGERS.values():
        reached = [port for port in _PORTS if admits(policy, stranger, port)]
        assert reached == ([8002] if has_own_port else [])
        assert admits(nobody, stranger, 8002) is has_own_port
        assert not admits(nobody, stranger, 8080)


def test_metrics_of_batch_jobs_are_read_by_the_same() -> None:
    policy = network.batch(_KNOWN)

    assert admits(policy, _PROMETHEUS, 8002)
    assert admits(policy, _API_SERVER, 8002)
    for stranger in _STRANGERS.values():
        assert not admits(policy, stranger, 8002)


@pytest.mark.parametrize(
    ("stated", "portals", "found", "expected"),
    [
        ((), "", (), ("monitoring",)),
        ((), "", ("o11y", "a"), ("a", "o11y")),
        ((), "metrics, more", ("o11y",), ("metrics", "more")),
        (("own",), "metrics", ("o11y",), ("own",)),
    ],
)
def test_namespaces_of_prometheus_are_stated_or_found(
    stated: tuple[str, ...],
    portals: str,
    found: tuple[str, ...],
    expected: tuple[str, ...],
    settings: object,
) -> None:
    settings.SLIPWAY_PROMETHEUS_NAMESPACES = portals  # type: ignore[attr-defined]
    capabilities = Capabilities(
        prometheuses=tuple(PrometheusSelection(name, "k8s", {}) for name in found),
        api_servers=("10.0.9.4", "fd00::7"),
    )

    context = rendering.context_for(
        team="vision",
        name="detector",
        deployment_id=1,
        cluster=Cluster(gateway_namespace="gw", gateway_name="gw", kind="eks"),
        policy=ServingPolicy(prometheus_namespaces=stated),
        capabilities=capabilities,
    )

    assert context.metrics_namespaces == expected
    assert context.control_plane_cidrs == ("10.0.9.4/32", "fd00::7/128")
