"""Policies of callers and of pods on a real API server with the published kinds: lists at their bounds, what is
refused, and that a refusal holds back no route.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from deployments.access.domain.headers import CALLER_HEADER
from deployments.callers.services import keys, limit_room
from deployments.callers.services.issuing import KeyLimits
from deployments.manifests.domain import network
from deployments.manifests.domain.access import caller_keys, limit_rules
from deployments.manifests.domain.access.limit_rules import ClientLimit
from deployments.manifests.domain.metadata import ManifestContext
from deployments.models import Deployment
from deployments.registry.gateways import object_store
from deployments.rollouts.services import actions
from deployments.spec.domain import serving_spec
from fleet.clusters.services import api_server_probe
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from tests.cluster import kserve
from tests.cluster.kubectl import Kubectl
from tests.deployments.callers.test_refused_policies import canary
from tests.deployments.manifests.growing_lists import CASES
from tests.deployments.manifests.network_evaluation import Peer, admits
from tests.deployments.manifests.test_namespace_policies import _case
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.world import World, connect, make_world, moving_clock

__all__ = ["moving_clock"]
pytestmark = pytest.mark.skipif(
    kserve.named_folder() is None, reason="the kinds of gateways come with SLIPWAY_CRD_DIR"
)
_SENT = frozenset({"HTTPRoute", "SecurityPolicy", "BackendTrafficPolicy", "Secret"})
_NAMESPACE = "vision"


def test_lists_at_every_bound_and_above_are_accepted(
    admin: Kubectl, context: ManifestContext, journey: Callable[[str], None]
) -> None:
    here = replace(context, gateway_namespace=context.namespace)
    flags = ["--server-side", "--dry-run=server", "--field-manager=slipway", "-f", "-"]
    refused: dict[str, str] = {}

    for growing, size in CASES:
        manifests = growing.make(here, size)
        documents = "\n---\n".join(json.dumps(manifest) for manifest in manifests)
        try:
            admin.run("apply", *flags, stdin=documents)
        except AssertionError as error:
            refused[f"{size} {growing.name}"] = str(error)[-600:]

    # Envoy Gateway's kind of scripts is in no folder of kinds.
    assert {
        case: message for case, message in refused.items() if "EnvoyExtensionPolicy" not in message
    } == {}
    journey(f"{len(CASES)} lists of callers, models and addresses at the bounds of their schemas")


def test_one_rule_too_many_is_refused_by_the_kind_itself(
    admin: Kubectl, context: ManifestContext
) -> None:
    """So that what the tests above prove is a bound."""
    rules = [
        rule
        for number in range(17)
        for rule in limit_rules.rules_of(
            {f"caller.{number}": ClientLimit(60)},
            header=CALLER_HEADER,
            are_numbered=True,
        ).rules
    ]
    policy = caller_keys.limits(context, rules)
    flags = ["--server-side", "--dry-run=server", "--field-manager=slipway", "-f", "-"]

    with pytest.raises(AssertionError, match="at most 16 items"):
        admin.run("apply", *flags, stdin=json.dumps(policy))


class _HalfReal(RecordingCluster):
    """Routes, policies and keys are the real server's, everything else is recorded."""

    def __init__(self, real: KubeClient) -> None:
        super().__init__()
        self._real = real

    def apply(self, manifest: Mapping[str, Any], **how: Any) -> Any:
        if manifest["kind"] in _SENT and not how.get("dry_run"):
            how_real = {name: value for name, value in how.items() if name != "on_warning"}
            self._real.apply(manifest, **how_real)
        return super().apply(manifest, **how)


@pytest.fixture
def half_real(
    admin: Kubectl, cluster_id: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[_HalfReal]:
    admin.run("create", "namespace", _NAMESPACE)
    cluster = _HalfReal(_administrators(admin, cluster_id))
    connect(cluster, monkeypatch)
    yield cluster
    clients.forget()
    admin.run("delete", "namespace", _NAMESPACE, "--wait=false")


def _administrators(admin: Kubectl, cluster_id: int) -> KubeClient:
    from fleet.models import Cluster

    Cluster.objects.filter(pk=cluster_id).update(kubeconfig_path=str(admin.kubeconfig))
    clients.forget()
    return clients.client_for(cluster_id)


def test_an_abort_reaches_the_live_route_although_the_server_refuses_the_limits(
    admin: Kubectl,
    half_real: _HalfReal,
    moving_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
    journey: Callable[[str], None],
) -> None:
    world: World = make_world(half_real, moving_clock)
    monkeypatch.setattr(object_store, "store", lambda: world.store)
    deployment, rollout = canary(world)
    bound = limit_rules.MOST_RULES
    # As the portal wrote them: one rule for each caller, however many.
    monkeypatch.setattr(limit_rules, "MOST_RULES", 1000)
    monkeypatch.setattr(limit_room, "MOST_RULES", 1000)
    for number in range(17):
        draft = keys.KeyDraft(
            name=f"caller-{number}",
            contact="ana",
            limits=KeyLimits(requests_per_minute=10 + number),
        )
        keys.create(actor=world.lead, deployment_id=deployment.pk, draft=draft)
    world.work()
    problem = Deployment.objects.get().keys_at_gateway.problem

    actions.abort(actor=world.lead, rollout_id=rollout.pk)
    world.reconcile_now(deployment)
    route = admin.get("httproute", "detector", f"--namespace={_NAMESPACE}")
    secret = admin.get("secret", "detector-callers", f"--namespace={_NAMESPACE}")
    monkeypatch.setattr(limit_rules, "MOST_RULES", bound)
    world.clock.move(20)
    world.work()
    limits = admin.get("backendtrafficpolicy", "detector", f"--namespace={_NAMESPACE}")

    assert "at most 16 items" in problem
    weights = {
        (ref["name"], ref["weight"])
        for rule in route["spec"]["rules"]
        for ref in rule.get("backendRefs", ())
    }
    assert weights == {("detector-r1-predictor", 100)}
    assert len(secret["data"]) == 17
    assert len(limits["spec"]["rateLimit"]["local"]["rules"]) <= 16
    journey("an abort reaches the live route while the server refuses 17 limits")


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_stored_policies_admit_prometheus_and_the_api_server_to_metrics_and_nobody_else(
    cluster_id: int, context: ManifestContext, engine: str
) -> None:
    client = clients.client_for(cluster_id)
    served = _case(engine)
    here = replace(
        context, control_plane_cidrs=("10.0.9.4/32",), metrics_namespaces=("observability",)
    )

    stored = client.apply(network.build_workload_policy(here, served), force=True)

    port = network.metrics_port(served)
    assert admits(stored, Peer("observability"), port)
    assert admits(stored, Peer(address="10.0.9.4"), port)
    for stranger in (Peer("nlp"), Peer("default"), Peer(address="10.0.9.5")):
        assert not [port for port in (8000, 8001, 8002, 8080) if admits(stored, stranger, port)]


def test_the_portal_s_account_reads_where_the_api_server_is(
    admin: Kubectl, cluster_id: int
) -> None:
    """Without them metrics would be cut off. This server is told to write none, so an administrator does."""
    stated = ["10.0.1.7", "10.0.9.4"]
    endpoint_slice = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]} for address in stated],
    }
    client = clients.client_for(cluster_id)
    before = api_server_probe.read_addresses(client)

    admin.apply([endpoint_slice])
    found = api_server_probe.read_addresses(client)
    admin.run("delete", "endpointslice", "kubernetes", "--namespace=default")

    assert before is None
    assert list(found or ()) == stated
