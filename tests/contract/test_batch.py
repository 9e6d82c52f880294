"""A batch job on the local cluster: rows in S3, real Triton in real pods, each row once in the output."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from deployments.batch.domain import places
from deployments.batch.domain.states import FINAL, BatchState
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.services import advance, requests
from deployments.batch.services.requests import BatchDraft
from deployments.models import BatchJob, Model, ModelVersion
from fleet.capacity.selectors import notices
from fleet.kube.services import clients, nodes, objects
from fleet.models import Cluster, GpuLease, InstancePrice, LedgerRow, Node, Workload
from fleet.observation.services import sweep as observation
from portal.accounts.models import Role, Team, User
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user
from tests.capabilities import offering
from tests.contract import adder
from tests.contract.prices import price_all_nodes
from tests.contract.test_serving import running
from tests.installations import use_same_installation
from tests.waiting import PATIENCE_SECONDS, wait_for

__all__ = ["running"]
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "SLIPWAY_TEST_KUBECONFIG" in os.environ, reason="needs the local cluster's own Triton"
    ),
]
INPUT = "batch/vision/in/rows.jsonl"
# Between looks at what takes a minute or ends by itself.
SELDOM = 2.0


@dataclass
class Scene:
    team: Team
    member: User
    cluster: Cluster
    version: ModelVersion
    s3: Any
    bucket: str
    folder: Path

    def put_rows(self, lines: list[str]) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=INPUT, Body="".join(lines).encode())

    def request(self, name: str = "scores", **pods: Any) -> BatchJob:
        pods = {"instance_type": "g5.xlarge", "cpu": "1", "memory": "2Gi", "hours": 1, **pods}
        draft = BatchDraft(
            name=name,
            model="adder",
            version=self.version.number,
            cluster="local",
            input=f"s3://{self.bucket}/{INPUT}",
            output=f"s3://{self.bucket}/batch/vision/out/{name}/",
            pods=pods,
        )
        return requests.request(actor=self.member, team_slug="vision", draft=draft)

    def tick(self, job: BatchJob) -> BatchJob:
        BatchJob.objects.filter(pk=job.pk).exclude(next_check_at=None).update(
            next_check_at=clock.now()
        )
        advance.sweep()
        observation.observe(cluster_id=self.cluster.pk)
        job.refresh_from_db()
        return job

    def until(
        self, job: BatchJob, done: Callable[[], object], *, pause_seconds: float = 0.2
    ) -> BatchJob:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            self.tick(job)
            if done():
                return job
            assert job.state not in (*FINAL, "submitted"), (job.state, job.state_reason)
            time.sleep(pause_seconds)  # bounded polling of real processes
        log = (self.folder / "log").read_text()[-3000:]
        raise AssertionError((job.state, job.state_reason, job.detail, job.done_rows, log))

    def rows_of(self, job: BatchJob) -> list[dict[str, Any]]:
        keys = BatchStore().list_keys(self.bucket, f"batch/vision/out/{job.name}/", at_most=10_000)
        bodies = [self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in keys]
        return [json.loads(line) for body in bodies for line in body.splitlines()]

    def pods(self) -> list[dict[str, Any]]:
        return objects.list_objects(
            cluster_id=self.cluster.pk, api_version="v1", kind="Pod", namespace="vision", labels={}
        )

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def patch_node(self, name: str, body: dict[str, Any]) -> None:
        found = nodes.get(cluster_id=self.cluster.pk, name=name)
        assert found is not None
        uid = found["metadata"]["uid"]
        nodes.patch(cluster_id=self.cluster.pk, name=name, uid=uid, body=body)

    def until_a_part_is_done(self, job: BatchJob) -> None:
        """Looks at the store alone: a pass takes so long that a fast worker ends in it."""
        end = time.monotonic() + PATIENCE_SECONDS
        prefix = places.marks_prefix(job.pk)
        while not BatchStore().list_keys(BatchStore().bucket, prefix, at_most=1):
            assert time.monotonic() < end
            time.sleep(0.02)  # bounded polling of real processes

    def workers(self) -> list[psutil.Process]:
        """The processes of the pods' programs."""
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid()
            and f"{self.folder}/pods/" in " ".join(_command(process))
            and "SLIPWAY_BATCH" in " ".join(_command(process))
        ]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture
def scene(db: None, running: tuple[Path, int], s3_store: Any, settings: Any) -> Iterator[Scene]:
    kubeconfig, _ = running
    clients.forget()
    use_same_installation()
    team = make_team(slug="vision", quota_gpus=8)
    member = make_user(username="member")
    make_membership(user=member, team=team, role=Role.MEMBER)
    cluster = Cluster.objects.create(
        name="local",
        kind="local",
        kubeconfig_path=str(kubeconfig),
        gateway_url="http://127.0.0.1:1",
        capabilities=offering("triton"),
        created_at=clock.now(),
    )
    at = clock.now()
    model = Model.objects.create(
        team=team, name="adder", created_by=member, created_at=at, changed_at=at
    )
    bucket = settings.SLIPWAY_S3_BUCKET
    version = adder.version(model, 2, bucket, s3_store.client, member)
    observation.observe(cluster_id=cluster.pk)
    price_all_nodes()
    yield Scene(team, member, cluster, version, s3_store.client, bucket, kubeconfig.parent)
    clients.forget()


def row(value: float, **more: Any) -> str:
    tensor = {"name": "x", "shape": [1], "datatype": "FP32", "data": [value]}
    return json.dumps({"inputs": [tensor], **more}) + "\n"


def test_rows_are_scored_by_a_real_triton_and_a_killed_worker_loses_and_doubles_none(
    scene: Scene,
) -> None:
    lines = [row(float(n), id=f"r{n}") for n in range(6000)]
    # Between them what people send: a blank line, no JSON, no inputs, and a wrong type.
    lines[10:10] = ["\n"]
    lines[3] = "{not JSON\n"
    lines[7] = '{"rows": []}\n'
    lines[4321] = lines[4321].replace("FP32", "INT8")
    scene.put_rows(lines)
    job = scene.request(workers=2, capacity="any", requests=4)

    scene.until(job, scene.workers)
    scene.until_a_part_is_done(job)
    first, *_ = scene.workers()
    os.kill(first.pid, signal.SIGKILL)
    scene.tick(job)
    assert (job.state, job.total_rows) == (BatchState.RUNNING, 6000)
    assert 0 < job.done_rows < 6000
    scene.until(job, lambda: job.state in FINAL)

    assert (job.state, job.state_reason) == (BatchState.SUCCEEDED, "")
    assert (job.done_rows, job.failed_rows) == (6000, 3)
    # The first that a worker reported: the one that died may have held the first rows.
    assert job.first_error.startswith(("row 4: the row is not JSON", "row 8: ", "row 4321: Unable"))
    rows = scene.rows_of(job)
    assert [item["row"] for item in rows] == list(range(1, 6001))
    failed = {item["row"]: item["error"] for item in rows if "error" in item}
    assert sorted(failed) == [4, 8, 4321]
    assert "Unable to parse 'data'" in failed[4321]
    for item in rows:
        if "error" not in item:
            number = int(item["id"][1:])
            (output,) = item["outputs"]
            assert output["data"] == [number + 2.0]
            assert (output["name"], output["datatype"], output["shape"]) == ("y", "FP32", [1])
    assert scene.tick(job).next_check_at is None
    wait_for("the pods are gone", lambda: not scene.pods())
    assert BatchStore().list_keys(scene.bucket, "batch-work/", at_most=10) == []
    observation.observe(cluster_id=scene.cluster.pk)
    # The dollars are the team's: each pod's GPU had an owner.
    leases = GpuLease.objects.filter(team_slug="vision")
    assert leases.count() >= 3
    assert not leases.filter(ended_at=None).exists()
    assert set(leases.values_list("workload__labels__deployment", flat=True)) == {"batch/scores"}
    assert not LedgerRow.objects.exists()
    assert Workload.objects.get().retired_at is not None


def test_a_reclaimed_spot_node_loses_and_doubles_no_row(scene: Scene) -> None:
    for name in ("local-a10g-1", "local-a10g-2"):
        scene.patch_node(name, {"metadata": {"labels": {"karpenter.sh/capacity-type": "spot"}}})
    observation.observe(cluster_id=scene.cluster.pk)
    price = InstancePrice.objects.filter(instance_type="g5.xlarge").first()
    assert price is not None
    price.pk, price.capacity_type, price.usd_per_hour_amount = None, "spot", Decimal("0.4")
    price.save(force_insert=True)
    scene.put_rows([row(float(n), id=f"r{n}") for n in range(12_000)])
    job = scene.request(workers=2, capacity="spot", requests=2)
    scene.until(job, lambda: job.done_rows > 0 and len(scene.workers()) == 2)
    assert job.done_rows < 12_000
    first = min(scene.pods(), key=lambda pod: pod["metadata"]["name"])
    taken, before = first["spec"]["nodeName"], scene.uids()

    # As AWS's node termination handler does it: the taint, no new pods, and eviction of what is there.
    taint = {"key": "aws-node-termination-handler/spot-itn", "value": "1", "effect": "NoSchedule"}
    found = nodes.get(cluster_id=scene.cluster.pk, name=taken)
    assert found is not None
    taints = [*found["spec"]["taints"], taint]
    scene.patch_node(taken, {"spec": {"taints": taints, "unschedulable": True}})
    observation.observe(cluster_id=scene.cluster.pk)
    notice = notices.list_node_notices(Node.objects.get(name=taken))
    assert [item.title for item in notice] == ["Spot interruption"]
    nodes.evict(
        cluster_id=scene.cluster.pk,
        namespace="vision",
        pod=first["metadata"]["name"],
        uid=first["metadata"]["uid"],
    )
    scene.until(job, lambda: first["metadata"]["uid"] not in scene.uids())
    objects.delete(
        cluster_id=scene.cluster.pk, api_version="v1", kind="Node", namespace=None, name=taken
    )
    nodes_of: dict[str, str] = {}

    def is_final() -> bool:
        met = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in scene.pods()}
        nodes_of.update({uid: node for uid, node in met.items() if node and uid not in before})
        return job.state in FINAL

    scene.until(job, is_final)

    assert (job.state, job.state_reason) == (BatchState.SUCCEEDED, "")
    assert (job.done_rows, job.failed_rows) == (12_000, 0)
    rows = scene.rows_of(job)
    assert [(item["row"], item["id"]) for item in rows] == [
        (n, f"r{n - 1}") for n in range(1, 12_001)
    ]
    assert all(item["outputs"][0]["data"] == [int(item["id"][1:]) + 2.0] for item in rows)
    # That was no failure of the job. A successor that was met (it may find no row left) ran on another node.
    assert job.attempt == 1
    assert taken not in nodes_of.values()
    assert GpuLease.objects.filter(team_slug="vision", node__name=taken).count() == 1
    assert Node.objects.get(name=taken).gone_at is not None


def test_it_can_be_canceled_and_what_is_done_stays(scene: Scene) -> None:
    scene.put_rows([row(float(n)) for n in range(40_000)])
    job = scene.request(workers=1, capacity="any", requests=1)
    scene.until(job, lambda: job.done_rows > 0)

    requests.cancel(actor=scene.member, job_id=job.pk)
    scene.until(job, lambda: job.state in FINAL)

    assert (job.state, job.state_reason) == (BatchState.CANCELED, "member canceled it.")
    wait_for("the pods are gone", lambda: not scene.pods())
    numbers = [item["row"] for item in scene.rows_of(job)]
    assert len(numbers) == len(set(numbers))
    assert job.done_rows <= len(numbers) < 40_000
