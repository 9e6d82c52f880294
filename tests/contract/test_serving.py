"""The real thing on the local cluster: approve, Triton answers through Envoy, a canary splits,
abort.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, Model, ModelVersion, Rollout
from deployments.plans.domain.rollout_plan import DRAIN_SECONDS
from deployments.preflight.services.preflight import DeployDraft
from deployments.quality.selectors import quality
from deployments.quality.services import golden_requests
from deployments.rollouts.services import actions
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services import try_it
from deployments.serving.services.try_it import TrialTarget
from deployments.spec.domain.serving_spec import AdditionalModel, Network, ServingSpec
from deployments.states import Environment, RolloutPhase
from fleet.kube.services import clients
from fleet.telemetry.services import gateway
from portal.accounts.models import Role
from portal.core import clock
from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.accounts import make_membership, make_team, make_user
from tests.capabilities import offering
from tests.contract import adder, triton_administration
from tests.contract.sweeps import until
from tests.installations import use_same_installation
from tests.waiting import PATIENCE_SECONDS

_ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(
        "SLIPWAY_TEST_KUBECONFIG" in os.environ, reason="needs the local cluster's own gateway"
    ),
]


@pytest.fixture
def running(s3_store: Any, settings: Any, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A local cluster with controllers and Envoy; ends with all its children."""
    pytest.importorskip("pytriton")
    gateway_port = free_ports.take_one()
    command = [sys.executable, "-m", "slipway_localcluster", "--data-dir", str(tmp_path)]
    command += ["--port", "0", "--gateway-port", str(gateway_port), "--own-envoy"]
    environment = {**os.environ, "SLIPWAY_S3_ENDPOINT_URL": settings.SLIPWAY_S3_ENDPOINT_URL}
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "ready" in line, (tmp_path / "log").read_text()
    yield tmp_path / "kubeconfig", gateway_port
    process.terminate()
    process.wait(timeout=PATIENCE_SECONDS)
    process.stdout.close()
    log.close()


@pytest.mark.parametrize("engine", ["kserve-triton", "triton"])
def test_a_model_answers_a_canary_splits_and_abort_returns_everything(
    db: None, running: tuple[Path, int], s3_store: Any, settings: Any, engine: Any
) -> None:
    import boto3

    from fleet.models import Cluster

    kubeconfig, gateway_port = running
    clients.forget()
    use_same_installation()
    team = make_team(slug="vision", quota_gpus=8)
    member, lead = make_user(username="member"), make_user(username="lead")
    make_membership(user=member, team=team, role=Role.MEMBER)
    make_membership(user=lead, team=team, role=Role.LEAD)
    cluster = Cluster.objects.create(
        name="local",
        kind="local",
        kubeconfig_path=str(kubeconfig),
        gateway_url=f"http://127.0.0.1:{gateway_port}",
        capabilities=offering("kserve-triton", "triton"),
        created_at=clock.now(),
    )
    at = clock.now()
    model, other = (
        Model.objects.create(team=team, name=name, created_by=member, created_at=at, changed_at=at)
        for name in ("adder", "large-adder")
    )
    s3 = boto3.client("s3", endpoint_url=settings.SLIPWAY_S3_ENDPOINT_URL)
    bucket = settings.SLIPWAY_S3_BUCKET
    one, two = (adder.version(model, number, bucket, s3, member) for number in (1, 2))
    adder.version(other, 9, bucket, s3, member)
    # Warm-up is not a default setting: its configuration must reach Triton through the bucket.
    spec = ServingSpec(
        engine=engine,
        instance_type="g5.xlarge",
        cpu="1",
        memory="2Gi",
        warm_up=True,
        network=Network(access="open"),
        additional_models=(AdditionalModel(model="large-adder", version=9, instances_per_gpu=2),),
    )

    # Where stopping needs no approval.
    draft = DeployDraft(one.pk, cluster.pk, "adder", spec, environment=Environment.STAGING)
    change = requests.request_deploy(actor=member, draft=draft)
    decisions.approve(actor=lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    deployment = Deployment.objects.get()

    def state() -> str:
        deployment.refresh_from_db()
        events = deployment.events.order_by("id").values_list("message", flat=True)
        log = (kubeconfig.parent / "log").read_text()[-3000:]
        return f"{deployment.state}: {deployment.state_reason} {list(events)} {log}"

    until(lambda: state().startswith("ready"), state)
    url = deployment_selectors.url_of(deployment)
    assert "model_warmup {" in _config_of(kubeconfig.parent, "adder")
    _serves_the_additional_model(url, _config_of(kubeconfig.parent, "large-adder"))
    triton_administration.require_shut(url)
    triton_administration.require_shut_in_the_pod(deployment)
    until(lambda: adder.answers(url, 5)[2.0] == 5, lambda: f"{adder.answers(url, 1)} {state()}")

    steps = [{"weight": 30, "soak_seconds": 0, "min_requests": 0}]
    canary = requests.request_canary(
        actor=member, deployment_id=deployment.pk, version_id=two.pk, steps=steps
    )
    decisions.approve(actor=lead, change_id=canary.pk, evidence_hash=canary.evidence_hash)
    until(lambda: _running_since() is not None, state)
    until(lambda: adder.answers(url, 20)[3.0] > 0, state)
    answers = adder.answers(url, 400)
    assert answers[2.0] + answers[3.0] == 400
    assert 80 < answers[3.0] < 160, answers
    by_grpc = adder.grpc_answers(url, 400)
    assert by_grpc[2.0] + by_grpc[3.0] == 400
    assert 80 < by_grpc[3.0] < 160, by_grpc
    _the_gateway_counted(cluster.pk, engine)
    # It rides along: stable and candidate answer it alike.
    assert adder.answers(url, 20, model="large-adder")[10.0] == 20

    actions.abort(actor=member, rollout_id=Rollout.objects.get().pk, reason="enough")
    until(lambda: adder.answers(url, 30)[2.0] == 30, state)
    _let_the_drain_be_over(state)
    until(lambda: Rollout.objects.get().phase == RolloutPhase.ABORTED, state)
    assert adder.answers(url, 20)[2.0] == 20
    assert adder.grpc_answers(url, 20)[2.0] == 20
    # Another deployment's name, or none, reaches no model.
    assert adder.grpc_answers(f"{url}s", 1)[-1.0] == 1

    if engine == "kserve-triton":
        # Once: it costs two more starts of Triton.
        _a_drifting_candidate_is_stopped_before_traffic(member, lead, deployment, two, state)

    if engine == "triton":
        scale = requests.request_scale(
            actor=member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        )
        decisions.approve(actor=lead, change_id=scale.pk, evidence_hash=scale.evidence_hash)
        until(lambda: _state_of(scale) == "done", state)
        assert adder.answers(url, 20)[2.0] == 20

        stop.stop(actor=member, deployment_id=deployment.pk)
        until(lambda: state().startswith("stopped"), state)
        assert plain_http.client.get(f"{url}/v2/health/ready").status_code == 404

        start = requests.request_start(actor=member, deployment_id=deployment.pk)
        decisions.approve(actor=lead, change_id=start.pk, evidence_hash=start.evidence_hash)
        until(lambda: _state_of(start) == "done", state)
        until(lambda: adder.answers(url, 5)[2.0] == 5, state)

    retire = requests.request_retire(actor=member, deployment_id=deployment.pk)
    decisions.approve(actor=lead, change_id=retire.pk, evidence_hash=retire.evidence_hash)
    until(lambda: state().startswith("retired"), state)
    assert plain_http.client.get(f"{url}/v2/health/ready").status_code == 404
    clients.forget()


def _a_drifting_candidate_is_stopped_before_traffic(
    member: Any, lead: Any, deployment: Deployment, drifting: ModelVersion, state: Callable[[], str]
) -> None:
    """Saved once from the stable revision's answer; the candidate must match it."""
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.0]}]}
    tried = try_it.send(
        actor=member,
        deployment_id=deployment.pk,
        body=json.dumps(request),
        target=TrialTarget.STABLE,
    )
    golden_requests.save(
        actor=member,
        team_slug="vision",
        model_name="adder",
        name="one",
        request=request,
        expected=json.loads(tried.text),
        version_id=tried.version_id,
    )
    url = deployment_selectors.url_of(deployment)
    canary = requests.request_canary(
        actor=member,
        deployment_id=deployment.pk,
        version_id=drifting.pk,
        steps=[{"weight": 50, "soak_seconds": 0, "min_requests": 0}],
    )
    decisions.approve(actor=lead, change_id=canary.pk, evidence_hash=canary.evidence_hash)

    _let_the_drain_be_over(state)
    until(lambda: Rollout.objects.latest("id").phase == RolloutPhase.ABORTED, state)
    rollout = Rollout.objects.latest("id")
    assert rollout.change_id == canary.pk
    assert not rollout.events.filter(kind="running").exists()
    assert adder.answers(url, 20)[2.0] == 20
    before_traffic = quality.before_traffic(rollout=rollout)
    assert before_traffic.signature_message == "inputs and outputs match the file"
    assert before_traffic.message == (
        "1 of 1 golden requests failed: one: "
        "y: element 1 of 1 is 3, expected 2: off by 1, allowed 0.0021"
    )
    assert before_traffic.rows[0].against_stable[0].largest_absolute == 1.0


def _let_the_drain_be_over(state: Callable[[], str]) -> None:
    """No request is open, so that nothing is gained by waiting as long as a plan has to."""
    until(lambda: Rollout.objects.latest("id").drain_started_at is not None, state)
    Rollout.objects.exclude(drain_started_at=None).update(
        drain_started_at=F("drain_started_at") - timedelta(seconds=DRAIN_SECONDS)
    )


def _the_gateway_counted(cluster_id: int, engine: str) -> None:
    """As a cluster's own proxies are read: through the API server."""
    suffix = "-predictor" if engine == "kserve-triton" else ""
    services = [f"adder-r{number}{suffix}" for number in (1, 2)]
    reading = gateway.read(cluster_id=cluster_id, namespace="vision", services=services)
    assert not reading.problem
    stable, candidate = (reading.counts[service]["slipway-envoy"] for service in services)
    assert stable.requests > 400
    assert 160 < candidate.requests < stable.requests
    assert (stable.lost, candidate.lost) == (0, 0)


def _config_of(folder: Path, model: str) -> str:
    """The configuration with the revision's settings, as it lies in the pod's own repository."""
    texts = {path.read_text() for path in folder.rglob(f"{model}/configs/slipway-*.pbtxt")}
    (only,) = texts
    return only


def _serves_the_additional_model(url: str, config: str) -> None:
    """From the same pod, with its own settings."""
    assert "count: 2" in config
    assert "model_warmup" not in config
    assert adder.answers(url, 5, model="large-adder")[10.0] == 5


def _state_of(change: ChangeRequest) -> str:
    change.refresh_from_db()
    return change.state


def _running_since() -> Any:
    rollout = Rollout.objects.first()
    return rollout.step_started_at if rollout else None
