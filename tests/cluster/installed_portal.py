"""The portal of the Helm chart, all of its roles, as processes of this machine with TLS."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from slipway_localcluster.controllers import free_ports
from tests.cluster import helm
from tests.cluster.certificates import Authority
from tests.cluster.helm import Helm, Manifest
from tests.cluster.waiting import wait_until

HOST = "slipway.example.org"
_WORKERS = ("delivery", "telemetry", "artifacts", "notifications")
_ROLES = (*(f"worker-{name}" for name in _WORKERS), "beat", "watcher")


@dataclass(frozen=True, slots=True)
class InstalledPortal:
    """`url` is where web answers for `HOST`; `trust` holds its certificate authority."""

    url: str
    trust: ssl.SSLContext
    folder: Path
    environment: dict[str, str]
    # What the pod of `helm test` runs.
    test_command: list[str]

    def helm_test(self) -> str:
        """What it prints. Raises CalledProcessError where it fails."""
        there = {"WEB": self.url, "WEB_HOST": HOST}
        done = subprocess.run(
            self.test_command,
            cwd=helm.ROOT,
            env={**self.environment, **there},
            check=True,
            timeout=300,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def manage(self, *arguments: str) -> str:
        """The output of a command in web's pod."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=helm.ROOT,
            env=self.environment,
            check=True,
            timeout=300,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def logs(self) -> str:
        """The end of each."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text()[-1500:]}" for log in logs)


@contextmanager
def installed(
    chart: Helm, folder: Path, *, values: dict[str, Any], secrets: dict[str, dict[str, str]]
) -> Iterator[InstalledPortal]:
    """`secrets` are the Secrets that the values name."""
    sizes = {
        "web": {"tlsSecretName": "web-tls", "processes": 1},
        "workers": {name: {"processes": 1} for name in _WORKERS},
    }
    manifests = chart.render("portal", helm.write_values(folder, **values, **sizes))
    outside = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    outside |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(folder)}
    outside["SLIPWAY_STATIC_ROOT"] = "/tmp/staticfiles"

    def environment_of(container: Manifest) -> dict[str, str]:
        return {**outside, **helm.environment(container, secrets)}

    def run(command: list[str], container: Manifest) -> None:
        environment = helm.with_scratch(environment_of(container), folder)
        subprocess.run(command, cwd=helm.ROOT, env=environment, check=True, timeout=900)

    migrate = helm.container_of(manifests, "portal-migrate")
    run(helm.command(migrate, folder), migrate)
    # As the Dockerfile does.
    run([sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"], migrate)
    web, port, trust = web_with_tls(manifests, folder)
    with ExitStack() as stack:
        stack.enter_context(helm.process(web, environment_of(web), folder))
        for role in _ROLES:
            container = {**helm.container_of(manifests, f"portal-{role}"), "name": role}
            stack.enter_context(helm.process(container, environment_of(container), folder))
        environment = helm.with_scratch(environment_of(web), folder)
        (test,) = [item for item in manifests if item["kind"] == "Pod"]
        command = helm.command(test["spec"]["containers"][0], folder)
        url = f"https://127.0.0.1:{port}"
        portal = InstalledPortal(url, trust, folder, environment, command)
        wait_until(lambda: _answers(portal), portal.logs)
        yield portal


def web_with_tls(manifests: list[Manifest], folder: Path) -> tuple[Manifest, int, ssl.SSLContext]:
    """On a free port of loopback, with a certificate that the test's authority signed."""
    web = helm.container_of(manifests, "portal-web")
    authority = Authority(folder / "ca")
    authority.sign("web")
    port = free_ports.take_one()
    # /tmp of the container is this test's folder.
    places = {
        "0.0.0.0:8000": f"127.0.0.1:{port}",
        "/tls/tls.crt": "/tmp/ca/web.crt",
        "/tls/tls.key": "/tmp/ca/web.key",
    }
    for place, here in places.items():
        web["args"] = [item.replace(place, here) for item in web["args"]]
    return web, port, ssl.create_default_context(cafile=str(authority.path))


def _answers(portal: InstalledPortal) -> bool:
    try:
        answer = httpx.get(
            f"{portal.url}/readyz", headers={"Host": HOST}, verify=portal.trust, timeout=30
        )
    except httpx.TransportError:
        return False
    return answer.status_code == httpx.codes.OK
