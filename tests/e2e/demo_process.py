"""Starts the whole demo as a person would, and ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import psutil

from slipway_localcluster.controllers import free_ports
from tests.waiting import wait_for

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
# Longer than the demo itself waits, so that it says which part was not ready.


class DemoProcess:
    """`make demo`'s own program with a folder and ports of its own."""

    def __init__(self, folder: Path, *, has_samples: bool = False) -> None:
        self.folder = folder
        self.has_samples = has_samples
        self.output = folder.parent / f"{folder.name}.output"
        self.process: subprocess.Popen[bytes] | None = None
        # Of the MLflow server that it imports from, which a test starts when it needs it.
        self.mlflow_port = free_ports.take_one()
        # What REST answered as soon as a fresh demo had greeted.
        self.clusters_at_first: Any = None

    def start(self, *, port: int | None = 0) -> None:
        command = [sys.executable, "-m", "slipway_demo", "--data-dir", str(self.folder)]
        if not self.has_samples:
            command.append("--no-samples")
        if port is not None:
            command += ["--port", str(port)]
        own = ("SLIPWAY_", "AWS_", "DJANGO_", "PYTEST_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        environment["SLIPWAY_IMPORT_MLFLOW"] = f"lab=http://127.0.0.1:{self.mlflow_port}"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            wait_for("greeting of the demo", self._has_greeted)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.said}") from failure

    def _has_greeted(self) -> bool:
        assert self.process
        assert self.process.poll() is None, "The demo ended."
        return "Ctrl-C stops everything" in self.said

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        assert self.process
        self.process.send_signal(how)
        return self.process.wait(60)

    @property
    def said(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def url(self) -> str:
        match = re.search(r"Slipway is ready: (\S+)", self.said)
        assert match, self.said
        return match[1]

    def password(self, name: str) -> str:
        match = re.search(rf"^ +{name} +(\S+)", self.said, re.MULTILINE)
        assert match, self.said
        return match[1]

    @property
    def samples(self) -> Path:
        return self.folder / "samples"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "cluster" / "kubeconfig"

    def processes(self) -> list[psutil.Process]:
        """Everything that this demo runs, identified by its folder: the supervisor's tree, and
        orphans.
        """
        rows = []
        for process in psutil.process_iter(["cmdline", "environ"]):
            texts = [*(process.info["cmdline"] or []), *(process.info["environ"] or {}).values()]
            is_ours = any(str(self.folder) in text for text in texts)
            if is_ours and process.pid != os.getpid() and process.status() != "zombie":
                rows.append(process)
        return rows

    def pid_of(self, part: str) -> int:
        """The process id of a part as the supervisor knows it; 0 while it is down."""
        command = [sys.executable, "-m", "supervisor.supervisorctl"]
        command += ["-c", str(self.folder / "supervisord.conf"), "pid", part]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return int(done.stdout) if done.stdout.strip().isdecimal() else 0
