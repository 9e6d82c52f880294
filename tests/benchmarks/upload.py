"""How fast a file reaches the object store through the portal, and what its verification uses.

1. 1 GiB through the portal's flow (start, sign, PUT the parts, complete), against boto3's own
   multipart upload of the same file to the same server, with the same parts and threads. Both in
   pairs, of which each begins with the other one; what was written before is on disk first, so that
   neither pays for the other's bytes. The figure is the median of the pairs' ratios;
2. the growth of the web processes meanwhile: the bytes must not pass through them;
3. the digests of a folder of 10 GB: the worker's peak memory and the largest file it kept.

SLIPWAY_BENCH_MIB makes the file and the folder smaller, by their ratio.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import psutil
import urllib3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

from tests.benchmarks.result import Result
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person

MIB = 2**20
FILE_MIB = int(os.environ.get("SLIPWAY_BENCH_MIB", "1024"))
FILES = 10
PART_BYTES = 8 * MIB
THREADS = 4
PAIRS = 5
SIGNED_AT_ONCE = 16
# The least ratio of the portal's throughput to boto3's, and the most memory in MiB.
OF_BARE = 0.95
WEB_MIB = 10.0
VERIFY_MIB = 200.0


def main() -> Result:
    print(__doc__)
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        demo = DemoProcess(Path(folder) / "var")
        demo.start()
        try:
            return _compare(demo, Path(folder))
        finally:
            demo.stop()


def _compare(demo: DemoProcess, folder: Path) -> Result:
    web = [p for p in demo.processes() if "portal.wsgi:application" in " ".join(p.cmdline())]
    environment = web[0].environ()
    file = folder / "weights.onnx"
    with file.open("wb") as target:
        target.writelines(itertools.repeat(os.urandom(MIB), FILE_MIB))
    member, client = Person(demo, "member", keeps_connection=True), _client(environment)
    bucket = environment["SLIPWAY_S3_BUCKET"]
    _through_portal(member, file)  # the first one warms both
    before = _resident_mib(web)
    bare, ours = [], []
    for number in range(PAIRS):
        pair = [
            lambda: bare.append(_timed(lambda: _bare(client, bucket, "bench/0", file))),
            lambda: ours.append(_through_portal(member, file)),
        ]
        for one in pair if number % 2 else reversed(pair):
            os.sync()
            one()
    grown = max(0.0, _resident_mib(web) - before)
    ratio = statistics.median(b / o for b, o in zip(bare, ours, strict=True))
    peak, started = _verify_folder(client, bucket, environment)
    for name, seconds in (("boto3", bare), ("portal", ours)):
        rates = ", ".join(f"{FILE_MIB / one:.0f}" for one in seconds)
        print(f"{name:<8} {rates} MiB/s")
    print(
        f"of boto3 {ratio:.2f} (>= {OF_BARE}); web processes grew {grown:.1f} MiB (< {WEB_MIB:g})"
    )
    print(
        f"digests of {FILES} files of {FILE_MIB} MiB: peak {peak:.0f} MiB (< {VERIFY_MIB:g}), of which "
        f"{started:.0f} MiB before the first byte; no file on disk"
    )
    worst = max(OF_BARE / ratio, grown / WEB_MIB, peak / VERIFY_MIB)
    unit = "worst of three: 0.95 of boto3, 10 MiB of the web processes, 200 MiB of the worker"
    return Result("upload", round(worst, 2), 1.0, unit)


def _client(environment: dict[str, str]) -> Any:
    return boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=environment["SLIPWAY_S3_ENDPOINT_URL"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(
            s3={"addressing_style": "path"}, request_checksum_calculation="when_required"
        ),
    )


def _bare(client: Any, bucket: str, key: str, file: Path) -> None:
    config = TransferConfig(
        multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=THREADS
    )
    client.upload_file(str(file), bucket, key, Config=config)


def _through_portal(member: Person, file: Path) -> float:
    """Seconds of what a client does. The upload ends here: its bytes are no model."""
    began = time.monotonic()
    at = _send(member, file)
    taken = time.monotonic() - began
    member.post(f"{at}/abandon")
    return taken


def _send(member: Person, file: Path) -> str:
    """The next parts are signed while others are sent; of the first ones, one for each thread."""
    body = {
        "files": [{"path": file.name, "size_bytes": file.stat().st_size}],
        "allow_duplicate": True,
    }
    started = member.post("models/vision/bench/versions", body)
    at = f"versions/{started['id']}"
    plan = started["files"][0]
    last = plan["part_count"] + 1
    starts = [1, *range(THREADS + 1, last, SIGNED_AT_ONCE), last]
    groups = [range(*pair) for pair in itertools.pairwise(starts)]
    pool = urllib3.PoolManager(maxsize=THREADS, block=True)

    def put(part: dict[str, Any]) -> None:
        with file.open("rb") as source:
            source.seek((part["number"] - 1) * plan["part_size"])
            content = source.read(part["size_bytes"])
        answer = pool.request("PUT", part["url"], body=content, headers=part["headers"])
        assert answer.status == 200, answer.data

    with ThreadPoolExecutor(THREADS) as workers:
        sent = []
        for group in groups:
            signed = member.post(f"{at}/parts", {"numbers": list(group)})
            sent += [workers.submit(put, part) for part in signed]
        for one in sent:
            one.result()
    member.post(f"{at}/files/complete", {"paths": [file.name]})
    return at


def _verify_folder(client: Any, bucket: str, environment: dict[str, str]) -> tuple[float, float]:
    """Peak and starting memory in MiB of a process that computes the digests as the worker does."""
    for number in range(FILES):
        source = {"Bucket": bucket, "Key": "bench/0"}
        client.copy_object(Bucket=bucket, Key=f"bench/folder/{number}", CopySource=source)
    code = f"from tests.benchmarks import upload; upload.read_folder({bucket!r})"
    kept = {k: v for k, v in environment.items() if k.startswith(("SLIPWAY_", "AWS_", "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **kept, "DJANGO_SETTINGS_MODULE": "portal.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    peak, started = done.stdout.split()[-2:]
    return float(peak), float(started)


def read_folder(bucket: str) -> None:
    """In a process of its own, without a database: prints peak and starting memory in MiB."""
    import django

    django.setup()
    from deployments.registry.gateways import object_store
    from deployments.registry.services.examination import stored_files

    store = object_store.store()
    assert store.bucket == bucket
    started = _peak_mib()
    for number in range(FILES):
        key = f"bench/folder/{number}"
        stored_files.digest_of(store, key, store.head(key).version_id, lambda: None)
    print(_peak_mib(), started)


def _peak_mib() -> float:
    """Of this program: ru_maxrss would be at least what the process had that started it."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _resident_mib(processes: list[psutil.Process]) -> float:
    return float(sum(process.memory_info().rss for process in processes)) / MIB


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
