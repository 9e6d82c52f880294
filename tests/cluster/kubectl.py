"""kubectl as an administrator of the cluster: what an admin does, and no test of the portal."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KUBECTL = Path(sys.executable).with_name("kubectl")
_SECONDS = 300
_TRIES = 5
# A request on a busy machine; a kind that was stored but has no conditions yet.
_PASSING = ("(Timeout)", ".status.conditions accessor error", "storage is (re)initializing")


@dataclass(frozen=True, slots=True)
class Kubectl:
    kubeconfig: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(_KUBECTL), f"--kubeconfig={self.kubeconfig}", *arguments]

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """The output of a command that must succeed. What passes is tried again."""
        for _ in range(_TRIES):
            done = subprocess.run(
                self.command(*arguments),
                input=stdin,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            if done.returncode == 0:
                return done.stdout
            if not any(text in done.stderr for text in _PASSING):
                break
            time.sleep(1)
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr[-2000:]}")

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Server-side, as the field manager `admin`."""
        documents = "\n---\n".join(json.dumps(manifest) for manifest in manifests)
        flags = ["--server-side", "--force-conflicts", "--field-manager=admin", "-f", "-"]
        self.run("apply", *flags, stdin=documents)

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("get", *arguments, "--output=json"))
        return found

    def patch(self, *arguments: str, patch: Mapping[str, Any]) -> None:
        self.run("patch", *arguments, "--type=merge", f"--patch={json.dumps(patch)}")

    def kubeconfig_of(self, namespace: str, account: str, path: Path) -> Path:
        """Written to `path`: that of a service account, on this server."""
        config: dict[str, Any] = json.loads(self.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": self.token(namespace, account)}
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def token(self, namespace: str, account: str) -> str:
        """Of a service account, for a day."""
        where = f"--namespace={namespace}"
        return self.run("create", "token", account, where, "--duration=24h").strip()
