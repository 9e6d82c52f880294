"""The portal's chart as Helm renders it, and as it runs: commands, environment and probes as processes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
Manifest = dict[str, Any]


class Refused(AssertionError):
    """Helm did not accept the values; the message is its own."""


class Helm:
    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "HELM_CACHE_HOME": str(folder / "helm"),
        }

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._program), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise Refused(done.stderr[-3000:])
        return done.stdout

    def lint(self, values: Path) -> str:
        return self.run("lint", str(CHART), "--strict", "--values", str(values))

    def render(self, namespace: str, values: Path) -> list[Manifest]:
        text = self.run(
            "template", "portal", str(CHART), "--namespace", namespace, "--values", str(values)
        )
        return [item for item in yaml.safe_load_all(text) if item]


def write_values(folder: Path, **values: Any) -> Path:
    path = folder / "values.yaml"
    path.write_text(json.dumps(values))
    return path


def container_of(manifests: Sequence[Manifest], name: str) -> Manifest:
    (pod,) = [
        item["spec"]["template"]["spec"]
        for item in manifests
        if item["kind"] in ("Deployment", "Job") and item["metadata"]["name"] == name
    ]
    (container,) = pod["containers"]
    return dict(container)


def environment(container: Manifest, secrets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """As a kubelet would resolve it. A reference to a key that no Secret has is a KeyError."""
    made = {}
    for item in container["env"]:
        reference = item.get("valueFrom", {}).get("secretKeyRef")
        made[item["name"]] = (
            secrets[reference["name"]][reference["key"]] if reference else item["value"]
        )
    return made


def command(container: Manifest, scratch: Path) -> list[str]:
    """With this Python's programs, and /tmp of the container as `scratch`."""
    words: list[str] = [*container["command"], *container.get("args", [])]
    program, *arguments = words
    local = Path(sys.executable).with_name(program)
    return [
        str(local if local.exists() else program),
        *(argument.replace("/tmp", str(scratch)) for argument in arguments),
    ]


def with_scratch(env: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """With /tmp of the container as `scratch`. PATH is of this machine, where all may lie in /tmp."""
    return {
        name: value if name == "PATH" else value.replace("/tmp/", f"{scratch}/")
        for name, value in env.items()
    }


@contextmanager
def process(container: Manifest, env: Mapping[str, str], scratch: Path) -> Iterator[Path]:
    """Runs it; the file has its output."""
    log = scratch / f"{container['name']}.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            command(container, scratch),
            cwd=ROOT,
            env=with_scratch(env, scratch),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield log
        finally:
            running.terminate()
            running.wait(60)


def secret(namespace: str, name: str, **data: str) -> Manifest:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
