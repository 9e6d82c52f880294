"""How much the portal adds to the bare calls, from a file to the first answer, with real parts.

1. upload until ready, against a bare PUT to the same S3 server and hashing the file;
2. approval until the object is on the API server, against a bare server-side apply of a
   ConfigMap with kubectl;
3. approval until the first answer, against a bare start of the same Triton until it is ready.
"""

from __future__ import annotations

import hashlib
import statistics
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.benchmarks.result import Result
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for

ROUNDS = 3
# What the portal may add to the bare calls, in seconds, all three together.
BOUND_SECONDS = 5.0
SCRIPT = b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: bare, namespace: default}
data: {written: "%s"}
"""


@dataclass(frozen=True, slots=True)
class Compared:
    what: str
    portal_seconds: float
    bare_seconds: float

    @property
    def added_seconds(self) -> float:
        return max(0.0, self.portal_seconds - self.bare_seconds)


class Journey:
    def __init__(self, demo: DemoProcess) -> None:
        self._demo = demo
        self._member = Person(demo, "member")
        self._lead = Person(demo, "lead")

    def compare(self) -> list[Compared]:
        file = self._demo.samples / "filetype.onnx"
        uploads = [_timed(lambda: self._member.upload("filetype", file)) for _ in range(ROUNDS)]
        version = self._member.upload("filetype", file)
        bare_upload = _median(lambda: self._put_and_hash(file))
        bare_apply = _median(self._apply)
        rounds = [self._deploy(version, f"bench-{n}") for n in range(ROUNDS)]
        bare_start = statistics.median(started for _, _, started in rounds)
        return [
            Compared("upload until ready", statistics.median(uploads), bare_upload),
            Compared(
                "approval until the object is there",
                statistics.median(there for there, _, _ in rounds),
                bare_apply,
            ),
            Compared(
                "approval until the first answer",
                statistics.median(answered for _, answered, _ in rounds),
                bare_start,
            ),
        ]

    def _put_and_hash(self, file: Path) -> None:
        started = self._member.post(
            "models/vision/bare/versions",
            {
                "files": [{"path": file.name, "size_bytes": file.stat().st_size}],
                "allow_duplicate": True,
            },
        )
        (part,) = self._member.post(f"versions/{started['id']}/parts", {"numbers": [1]})
        content = file.read_bytes()
        hashlib.sha256(content).hexdigest()
        httpx.put(part["url"], content=content, headers=part["headers"]).raise_for_status()
        self._member.post(f"versions/{started['id']}/abandon")

    def _apply(self) -> None:
        self._kubectl("apply", "--server-side", "-f", "-", text=CONFIG_MAP % time.monotonic_ns())

    def _deploy(self, version: dict[str, Any], name: str) -> tuple[float, float, float]:
        """Seconds until the object, until the first answer, and of the Triton process alone."""
        change = self._member.request_deployment(version, name)
        began = time.monotonic()
        self._lead.approve(change)
        wait_for("object", lambda: self._has_object(name))
        there = time.monotonic() - began
        url = self._member.get(f"deployments/{change['deployment_id']}")["url"]
        wait_for("first answer", lambda: self._answers(url))
        answered = time.monotonic() - began
        started = self._start_bare_triton(name, url)
        self._retire(change["deployment_id"])
        return there, answered, started

    def _has_object(self, name: str) -> bool:
        listing = self._kubectl(
            "get", "inferenceservice", f"{name}-r1", "-n", "vision", "--ignore-not-found"
        )
        return name in listing

    def _answers(self, url: str) -> bool:
        try:
            return Classifier(self._demo, url, "filetype").kind_of(SCRIPT) == "python"
        except httpx.HTTPError:
            return False

    def _start_bare_triton(self, name: str, url: str) -> float:
        """Kills the pod's Triton: what passes until it is ready again is a start of Triton alone,
        with its model on disk and nothing to schedule, download or route.
        """
        victim = next(
            process
            for process in self._demo.processes()
            if process.name() == "tritonserver" and f"{name}-r1" in " ".join(process.cmdline())
        )
        victim.kill()
        began = time.monotonic()
        wait_for("answer after the restart", lambda: self._answers(url))
        return time.monotonic() - began

    def _retire(self, deployment_id: int) -> None:
        body = {"kind": "retire"}
        self._lead.approve(self._member.post(f"deployments/{deployment_id}/changes", body))
        wait_for(
            "end of the deployment",
            lambda: self._member.get(f"deployments/{deployment_id}")["state"] == "retired",
        )

    def _kubectl(self, *arguments: str, text: str | None = None) -> str:
        command = [str(Path(sysconfig.get_path("scripts")) / "kubectl"), *arguments]
        done = subprocess.run(
            [*command, "--kubeconfig", str(self._demo.kubeconfig)],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


def main() -> Result:
    print(__doc__)
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        demo = DemoProcess(Path(folder) / "var")
        demo.start()
        try:
            compared = Journey(demo).compare()
        finally:
            demo.stop()
    for row in compared:
        print(
            f"{row.what:<36} portal {row.portal_seconds:6.2f} s   bare {row.bare_seconds:6.2f} s   "
            f"adds {row.added_seconds:5.2f} s"
        )
    added = round(sum(row.added_seconds for row in compared), 2)
    return Result("journey", added, BOUND_SECONDS, "s added to the bare calls")


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _median(work: Callable[[], object]) -> float:
    return statistics.median(_timed(work) for _ in range(ROUNDS))
