"""The demo's object store as a process of its own, on a versioned bucket."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.waiting import PATIENCE_SECONDS, wait_for

BUCKET = "models"
ORIGIN = "http://127.0.0.1:8000"


class Server:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_ports.take_one()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "slipway_demo.s3_server"),
                *("--data-dir", str(self.folder), "--port", str(self.port)),
            ]
        )
        wait_for("S3 server", self._is_healthy)

    def _is_healthy(self) -> bool:
        try:
            return plain_http.client.get(f"{self.url}/_health").is_success
        except httpx.TransportError:
            return False

    def stop(self, how: signal.Signals) -> int:
        assert self.process
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_SECONDS)

    def prepare(self) -> None:
        """Start it, with its bucket."""
        self.start()
        self.client.create_bucket(Bucket=BUCKET)
        self.client.put_bucket_versioning(
            Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}
        )
        rule = {"AllowedMethods": ["PUT"], "AllowedOrigins": [ORIGIN], "AllowedHeaders": ["*"]}
        self.client.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [rule]})

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGKILL)

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="demo",
            aws_secret_access_key="demo",
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    @property
    def peak_mib(self) -> float:
        """The most memory that the process has had resident."""
        assert self.process
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    @property
    def stored_bytes(self) -> int:
        """What the bodies take on disk; a file with two names counts once."""
        files = {f.stat().st_ino: f.stat() for f in (self.folder / "_bodies").iterdir()}
        return sum(stat.st_size for stat in files.values())
