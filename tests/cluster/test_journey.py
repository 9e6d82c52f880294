"""The whole way of a model on a real control plane: it is uploaded and examined, real KServe makes its
pods, real Triton answers HTTP and gRPC through real Envoy, a canary is promoted, and nothing is left when
the deployment is retired.

Node agent and gateway are clients of the API server in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from deployments.changes.services import decisions, requests
from deployments.delivery.services import live_objects
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.preflight.services.preflight import DeployDraft
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.spec.domain.serving_spec import KSERVE_TRITON, ServingSpec
from deployments.states import Environment, RolloutPhase
from fleet.clusters.services import capabilities
from fleet.localcluster.controllers.nodes import SIMULATED
from fleet.models import Cluster
from fleet.observation.services import sweep
from fleet.telemetry.services import poll
from portal.accounts.models import Role
from portal.core.errors import Conflict
from tests import plain_http
from tests.accounts import make_membership, make_team, make_user
from tests.cluster.egress import POD_TUNNEL
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import free_ports
from tests.cluster.uploads import upload
from tests.contract import adder
from tests.contract.sweeps import until
from tests.rollout_plans import AT_ONCE

_ROOT = Path(__file__).parents[2]
_GPU_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Agents:
    gateway_port: int
    log: Path


@pytest.fixture
def agents(s3_store: Any, settings: Any, tmp_path: Path, admin: Kubectl) -> Iterator[Agents]:
    """Node agent and gateway; their nodes are gone afterwards."""
    pytest.importorskip("pytriton")
    (port,) = free_ports(1)
    log = tmp_path / "agents.log"
    command = [sys.executable, "-m", "fleet.localcluster.run_agents", "--own-envoy"]
    command += [f"--kubeconfig={admin.kubeconfig}", f"--data-dir={tmp_path}"]
    command += [f"--gateway-port={port}", f"--pod-tunnel={admin.kubeconfig.parent / POD_TUNNEL}"]
    environment = {**os.environ, "SLIPWAY_S3_ENDPOINT_URL": settings.SLIPWAY_S3_ENDPOINT_URL}
    names = [machine.name for machine in SIMULATED]
    with ExitStack() as stack:
        stack.callback(admin.run, "delete", "node", *names, "--ignore-not-found")
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stack.enter_context(log.open("w")),
            text=True,
        )
        assert process.stdout is not None
        stack.callback(process.stdout.close)
        stack.callback(process.wait, timeout=_STOP_SECONDS)
        stack.callback(process.terminate)
        assert "ready" in process.stdout.readline(), log.read_text()
        for name in names:
            # Without the taint of a new node, which the node lifecycle controller takes away.
            admin.patch("node", name, patch={"spec": {"taints": [_GPU_TAINT]}})
        yield Agents(port, log)


@pytest.fixture
def served_cluster(cluster_id: int, namespace: str, agents: Agents) -> Cluster:
    """Registered, and probed as an administrator's test of the connection does, with the permissions
    that came with the namespace.
    """
    assert namespace
    url = f"http://127.0.0.1:{agents.gateway_port}"
    Cluster.objects.filter(pk=cluster_id).update(gateway_url=url)
    capabilities.probe(cluster_id=cluster_id)
    return Cluster.objects.get(pk=cluster_id)


def test_a_model_is_deployed_replaced_by_a_canary_and_retired(
    served_cluster: Cluster,
    agents: Agents,
    namespace: str,
    admin: Kubectl,
    client: Client,
    journey: Callable[[str], None],
) -> None:
    team = make_team(slug=namespace, quota_gpus=2)
    member, lead = make_user(username="member"), make_user(username="lead")
    make_membership(user=member, team=team, role=Role.MEMBER)
    make_membership(user=lead, team=team, role=Role.LEAD)
    client.force_login(member)
    one, two = (
        upload(client, team=team.slug, model="adder", body=adder.onnx_file(number))
        for number in (1, 2)
    )

    def approve(change: ChangeRequest) -> None:
        decisions.approve(actor=lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    def why() -> str:
        deployment = Deployment.objects.get()
        events = list(deployment.events.order_by("id").values_list("message", flat=True))
        phases = list(Rollout.objects.values_list("phase", "phase_reason"))
        objects = admin.run("get", "events,pods", f"--namespace={namespace}")
        log = agents.log.read_text()[-3000:]
        return f"{deployment.state}: {deployment.state_reason} {events} {phases}\n{objects}\n{log}"

    spec = ServingSpec(engine=KSERVE_TRITON, instance_type="g5.xlarge", cpu="1", memory="2Gi")
    draft = DeployDraft(one.pk, served_cluster.pk, "adder", spec, environment=Environment.STAGING)
    approve(requests.request_deploy(actor=member, draft=draft))
    deployment = Deployment.objects.get()

    def state() -> str:
        deployment.refresh_from_db()
        return deployment.state

    until(lambda: state() == "ready", why)
    url = deployment_selectors.url_of(deployment)
    until(lambda: adder.answers(url, 5)[2.0] == 5, why)
    until(lambda: adder.grpc_answers(url, 5)[2.0] == 5, why)
    (pod,) = admin.get("pods", f"--namespace={namespace}")["items"]
    assert pod["metadata"]["labels"]["serving.kserve.io/inferenceservice"]
    sweep.observe(cluster_id=served_cluster.pk)
    log = live_objects.read_log(
        actor=member, deployment_id=deployment.pk, pod=pod["metadata"]["name"], lines=200
    )
    assert "successfully loaded 'adder'" in log.text, log
    labels = admin.get("namespace", namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    steps = [{"weight": 50, "soak_seconds": 0, "min_requests": 0}]
    approve(
        requests.request_canary(
            actor=member, deployment_id=deployment.pk, version_id=two.pk, steps=steps, plan=AT_ONCE
        )
    )
    until(lambda: _phase() == RolloutPhase.RUNNING, why)
    until(lambda: adder.answers(url, 20)[3.0] > 0, why)
    for answers in (adder.answers(url, 200), adder.grpc_answers(url, 200)):
        assert answers[2.0] + answers[3.0] == 200
        assert 60 < answers[3.0] < 140, answers

    def shown() -> Any:
        rollout = rollouts.get_visible(actor=lead, rollout_id=Rollout.objects.get().pk)
        return rollouts.view_of(actor=lead, rollout=rollout)

    def is_promoted() -> bool:
        """By counters of both revisions, read from their pods through the API server. Evidence that
        changed meanwhile is reviewed again.
        """
        sweep.observe(cluster_id=served_cluster.pk)
        poll.poll()
        adder.answers(url, 10)
        adder.grpc_answers(url, 10)
        view = shown()
        if not view.is_promotable or not view.candidate_requests:
            return False
        with suppress(Conflict):
            actions.promote(
                actor=lead, rollout_id=view.rollout.pk, evidence_hash=view.evidence_hash
            )
            return True
        return False

    until(is_promoted, lambda: f"{shown()} {why()}")
    until(lambda: _phase() == RolloutPhase.COMPLETED, why)
    assert adder.answers(url, 20)[3.0] == adder.grpc_answers(url, 20)[3.0] == 20

    approve(requests.request_retire(actor=member, deployment_id=deployment.pk))
    until(lambda: state() == "retired", why)
    until(lambda: not admin.get("pods", f"--namespace={namespace}")["items"], why)
    assert plain_http.client.get(f"{url}/v2/health/ready").status_code == 404
    journey(
        "kserve-triton: uploaded, examined, approved, served by Triton through Envoy over HTTP and gRPC, "
        "canary promoted, retired"
    )


def _phase() -> str:
    return str(Rollout.objects.get().phase)
