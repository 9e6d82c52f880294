"""1,000 hostile files through the real verification: none executed, none hanging, memory bounded,
none *ready* that the runtime does not load.

PostgreSQL, an S3 server and the sandbox are the real ones; only the upload itself is left out. What
became ready is loaded again, from the bucket, by an ONNX Runtime that none of our code prepared.
SLIPWAY_BENCH_FILES makes it shorter, SLIPWAY_BENCH_SEED damages other bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.benchmarks import scene
from tests.benchmarks.result import Result
from tests.fixtures import hostile_files
from tests.fixtures.aws_server import serving_aws
from tests.fixtures.hostile_files import HostileFile

if TYPE_CHECKING:
    from deployments.models import Model

FILES = int(os.environ.get("SLIPWAY_BENCH_FILES", "1000"))
SEED = int(os.environ.get("SLIPWAY_BENCH_SEED", "8"))
# One death of a reader is tried once more: two times the wall time of a small file.
LONGEST_SECONDS = 300.0
MOST_MIB = 1024.0
_TRIES = 4
_LOAD = """
import json, sys, onnxruntime
onnxruntime.set_default_logger_severity(4)
wrong = []
for path in sys.argv[1:]:
    try:
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception:
        wrong.append(path)
print(json.dumps(wrong))
"""


@dataclass(frozen=True, slots=True)
class Verified:
    name: str
    version_id: int
    state: str
    seconds: float
    problem: str = ""


def main() -> Result:
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="slipway-hostile-")))
        scene.start_stores(parts, folder)
        _start_s3(parts)
        marker = folder / "executed"
        versions = list(_upload(hostile_files.generate(FILES, marker, seed=SEED)))
        began = time.monotonic()
        watch = _MemoryWatch()
        watch.start()
        with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
            done = list(workers.map(lambda one: _verify(*one), versions))
        mib = watch.finish()
        minutes = (time.monotonic() - began) / 60
        wrong = _not_loaded(done, folder)
        return _report(done, wrong, minutes=minutes, mib=mib, is_executed=marker.exists())


class _MemoryWatch(threading.Thread):
    """The largest resident size of a sandbox's process. What the kernel keeps of ended children
    would count this process as well, which holds all files.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._is_over = threading.Event()
        self._most = 0

    def run(self) -> None:
        while not self._is_over.wait(0.02):
            for child in psutil.Process().children():
                with contextlib.suppress(psutil.Error):
                    if any("sandbox_child" in part for part in child.cmdline()):
                        self._most = max(self._most, child.memory_info().rss)

    def finish(self) -> float:
        self._is_over.set()
        self.join()
        return self._most / 2**20


def _start_s3(parts: contextlib.ExitStack) -> None:
    import logging

    from django.conf import settings

    from deployments.registry.gateways import bucket_setup, object_store

    logging.disable(logging.CRITICAL)
    settings.SLIPWAY_S3_ENDPOINT_URL = parts.enter_context(serving_aws("s3"))
    settings.SLIPWAY_S3_BUCKET = f"bench-{secrets.token_hex(4)}"
    bucket_setup.prepare(
        object_store.s3_store(),
        region=settings.SLIPWAY_S3_REGION,
        origins=["http://127.0.0.1:8000"],
    )


def _upload(files: Iterator[HostileFile]) -> Iterator[tuple[str, int]]:
    from deployments.models import Model
    from portal.core import clock
    from tests.accounts import make_team, make_user

    user = make_user(username="uploader")
    model = Model.objects.create(
        team=make_team(slug="vision"),
        name="hostile",
        created_by=user,
        created_at=clock.now(),
        changed_at=clock.now(),
    )
    for number, file in enumerate(files, start=1):
        yield file.name, _store(model, number, file)


def _store(model: Model, number: int, file: HostileFile) -> int:
    """The row as a completed upload leaves it."""
    from deployments.models import ArtifactFile, ModelVersion
    from deployments.registry.domain import object_keys
    from deployments.registry.gateways import object_store
    from deployments.states import VersionState
    from portal.core import clock

    store = object_store.store()
    token = secrets.token_urlsafe(12)
    prefix = object_keys.upload_prefix(team="vision", model="hostile", token=token)
    version = ModelVersion.objects.create(
        model=model,
        number=number,
        state=VersionState.VERIFYING,
        filename=file.filename,
        declared_size_bytes=len(file.body),
        size_bytes=len(file.body),
        bucket=store.bucket,
        upload_prefix=prefix,
        created_by=model.created_by,
        created_at=clock.now(),
        next_check_at=clock.now(),
    )
    ArtifactFile.objects.create(
        version=version,
        path=file.filename,
        size_bytes=len(file.body),
        s3_version_id=store.put(
            f"{prefix}{file.filename}", file.body, content_type="application/octet-stream"
        ),
    )
    return version.pk


def _verify(name: str, version_id: int) -> Verified:
    """As a worker does it, until it is decided."""
    from django.db import connection

    from deployments.models import ModelVersion
    from deployments.registry.services import verification
    from deployments.states import VersionState

    began, problem = time.monotonic(), ""
    for _ in range(_TRIES):
        try:
            verification.advance(version_id)
        except Exception as error:  # noqa: BLE001  counted
            problem = f"{type(error).__name__}: {error}"
        state = ModelVersion.objects.values_list("state", flat=True).get(pk=version_id)
        if state != VersionState.VERIFYING:
            break
    connection.close()
    return Verified(name, version_id, str(state), time.monotonic() - began, problem)


def _not_loaded(done: Sequence[Verified], folder: Path) -> list[str]:
    from deployments.models import ModelVersion
    from deployments.registry.gateways import object_store

    store = object_store.store()
    names = {}
    for one in (deployment for deployment in done if deployment.state == "ready"):
        version = ModelVersion.objects.get(pk=one.version_id)
        path = folder / f"{one.version_id}.onnx"
        file = version.files.get()
        path.write_bytes(b"".join(store.read(file.key, file.s3_version_id)))
        names[str(path)] = one.name
    answer = subprocess.run(
        [sys.executable, "-c", _LOAD, *names], capture_output=True, text=True, check=True
    )
    return [names[path] for path in json.loads(answer.stdout)]


def _report(
    done: Sequence[Verified],
    wrong: Sequence[str],
    *,
    minutes: float,
    mib: float,
    is_executed: bool,
) -> Result:
    slowest = max(done, key=lambda one: one.seconds)
    hanging = [
        deployment.name
        for deployment in done
        if deployment.state == "verifying" or deployment.seconds > LONGEST_SECONDS
    ]
    raised = [
        f"{deployment.name}: {deployment.problem}" for deployment in done if deployment.problem
    ]
    states = ", ".join(f"{n} {state}" for state, n in Counter(o.state for o in done).most_common())
    print(f"{len(done)} files in {minutes:.1f} min: {states}")
    print(f"slowest: {slowest.name}, {slowest.seconds:.1f} s; memory of a process: {mib:.0f} MiB")
    print(f"executed: {is_executed}; hanging: {hanging}; raised: {raised}")
    print(f"ready, but not loaded by the runtime: {list(wrong)}")
    violations = is_executed + len(hanging) + len(raised) + len(wrong) + (mib > MOST_MIB)
    return Result("hostile files", violations, 0, "violations")
