"""A batch job on a recording cluster and a real store; the worker's program runs here, without Triton."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass
from typing import Any

from deployments.batch.domain import worker_program, worker_store
from deployments.batch.services import advance, requests
from deployments.batch.services.requests import BatchDraft
from deployments.models import BatchJob
from portal.core import clock
from tests.deployments.world import World

IN, OUT = "batch/vision/in/", "batch/vision/out/"


class Server:
    """In the place of Triton: answers with the number that a row has."""

    def __init__(self, dies_at: int = 0) -> None:
        self.asked = 0
        self._dies_at = dies_at

    def answer(self, number: int, line: bytes) -> dict[str, Any]:
        self.asked += 1
        if self.asked == self._dies_at:
            raise worker_store.WorkerEnded(1, "the node was reclaimed")
        try:
            return {"row": number, "outputs": [json.loads(line)["n"]]}
        except ValueError:
            return {"row": number, "error": "the row is not JSON"}


@dataclass
class Bench:
    world: World
    s3: Any
    bucket: str

    def put(self, body: bytes, key: str = f"{IN}rows.jsonl") -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)

    def put_rows(self, count: int) -> None:
        # As large as rows are, so that there are several chunks.
        rows = (json.dumps({"n": n, "x": "y" * 200}) for n in range(1, count + 1))
        self.put("\n".join(rows).encode())

    def draft(self, name: str = "scores", **changed: Any) -> BatchDraft:
        of_draft = {name for name in BatchDraft.__slots__ if name in changed}
        values: dict[str, Any] = {
            "name": name,
            "model": "detector",
            "version": 1,
            "cluster": "eks-test",
            "input": f"s3://{self.bucket}/{IN}rows.jsonl",
            "output": f"s3://{self.bucket}/{OUT}{name}/",
            **{name: changed.pop(name) for name in of_draft},
        }
        pods = {"instance_type": "g5.xlarge", "capacity": "on-demand", **changed}
        return BatchDraft(**values, pods=pods)

    def request(self, name: str = "scores", **changed: Any) -> BatchJob:
        draft = self.draft(name, **changed)
        return requests.request(actor=self.world.member, team_slug="vision", draft=draft)

    def tick(self, job: BatchJob, seconds: float = 5) -> BatchJob:
        self.world.clock.move(seconds)
        BatchJob.objects.filter(pk=job.pk).exclude(next_check_at=None).update(
            next_check_at=clock.now()
        )
        if advance.has_work():
            advance.sweep()
        job.refresh_from_db()
        return job

    def running(self, **changed: Any) -> BatchJob:
        """Planned and started."""
        job = self.request(**changed)
        self.tick(job)
        assert job.state == "running", job.state_reason
        return self.tick(job)

    def made(self, kind: str) -> list[Any]:
        return [body for key, body in self.world.cluster.objects.items() if key[0] == kind]

    def link(self, index: int = 0) -> str:
        (secret,) = self.made("Secret")
        return base64.b64decode(secret["data"][f"SLIPWAY_CHUNKS_{index}"]).decode()

    def work(self, server: Server | None = None, *, index: int = 0, link: str = "") -> Server:
        """What the pod of the index does."""
        server, stopping = server or Server(), threading.Event()
        worker = worker_program.Worker({"requests": 2}, link or self.link(index), stopping)
        worker.run(server)  # type: ignore[arg-type]
        return server

    def end_job(self, kind: str, reason: str = "") -> None:
        (made,) = self.made("Job")
        made["status"] = {"conditions": [{"type": kind, "status": "True", "reason": reason}]}

    def keys(self, prefix: str) -> list[str]:
        answer = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [row["Key"] for row in answer.get("Contents", [])]

    def rows(self, name: str = "scores") -> list[dict[str, Any]]:
        bodies = [
            self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            for key in self.keys(f"{OUT}{name}/")
        ]
        return [json.loads(line) for body in bodies for line in body.splitlines()]
