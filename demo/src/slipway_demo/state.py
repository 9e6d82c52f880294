"""The demo's data folder: its layout, and values that stay the same across starts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from slipway_demo.people import ROLES
from slipway_demo.ports import Ports

BUCKET = "slipway-models"
_LONGEST_SOCKET_PATH = 90


class AlreadyRunning(Exception):
    """Another demo holds this folder."""


@dataclass(frozen=True, slots=True)
class Secrets:
    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(50))
    s3_access_key: str = field(default_factory=lambda: f"demo-{secrets.token_hex(6)}")
    s3_secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    passwords: Mapping[str, str] = field(
        default_factory=lambda: {name: f"{name}-{secrets.token_hex(3)}" for name in ROLES}
    )


class Folder:
    """`var/`, or where --data-dir points. Secrets in it are readable by their owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.logs = self.root / "log"
        self.samples = self.root / "samples"
        self.kubeconfig = self.root / "cluster" / "kubeconfig"
        self.supervisor_config = self.root / "supervisord.conf"
        self.supervisor_pid = self.root / "supervisord.pid"
        self.migrations = self.root / "migrations.json"
        self._secrets = self.root / "secrets.json"
        self._ports = self.root / "ports.json"
        self._lock: TextIO | None = None

    def open(self) -> None:
        """Create the folder and lock it until this process ends. Raises AlreadyRunning."""
        for name in ("log", "s3", "valkey", "cluster", "samples", "beat"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._lock = (self.root / "lock").open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.seek(0)
            raise AlreadyRunning(
                f"Slipway already runs from {self.root} (process {self._lock.read().strip()}). "
                "Stop it with Ctrl-C there, or start another one with its own --data-dir."
            ) from error
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def empty(self) -> None:
        """Remove everything the demo kept. Raises AlreadyRunning while it is in use."""
        if self.root.exists():
            self.open()
            shutil.rmtree(self.root)

    def secrets(self) -> Secrets:
        """Return the secrets, which are created at the first start and kept. Users added later get a password."""
        if self._secrets.exists():
            kept = json.loads(self._secrets.read_text())
            kept["passwords"] = Secrets().passwords | kept["passwords"]
            secrets_now = Secrets(**kept)
        else:
            secrets_now = Secrets()
        content = {name: getattr(secrets_now, name) for name in Secrets.__dataclass_fields__}
        write_private(
            self._secrets, json.dumps(content | {"passwords": dict(secrets_now.passwords)})
        )
        return secrets_now

    def remembered_ports(self) -> dict[str, int]:
        return json.loads(self._ports.read_text()) if self._ports.exists() else {}

    def remember_ports(self, ports: Ports) -> None:
        self._ports.write_text(json.dumps(ports.to_json()))

    @property
    def supervisor_socket(self) -> Path:
        """The path of the supervisor's socket, in the temporary folder if it is too long for a Unix socket."""
        path = self.root / "supervisor.sock"
        if len(str(path)) <= _LONGEST_SOCKET_PATH:
            return path
        name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"slipway-{name}.sock"


def write_private(path: Path, content: str) -> None:
    beside = path.with_suffix(".tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    beside.replace(path)


def as_shell(variables: Mapping[str, Any]) -> str:
    return "".join(f"export {name}='{value}'\n" for name, value in sorted(variables.items()))
