"""A real API server of the local cluster, in its own process, for tests over HTTPS."""

import base64
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

_ROOT = Path(__file__).parents[2]
_KUBECTL = Path(sys.executable).with_name("kubectl")


@dataclass(frozen=True, slots=True)
class LocalApi:
    """Address and credentials of the server."""

    base_url: str
    token: str
    ca_path: Path
    kubeconfig: Path
    data_dir: Path

    def client(self) -> httpx.Client:
        context = ssl.create_default_context(cafile=str(self.ca_path))
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.base_url, headers=headers, verify=context, timeout=20)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 30) -> str:
        """The output of a kubectl command that must succeed."""
        done = self.try_kubectl(*arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_kubectl(
        self, *arguments: str, stdin: str | None = None, timeout: float = 30
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(_KUBECTL), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.kubectl_environment(),
            check=False,
        )

    def kubectl_environment(self) -> dict[str, str]:
        home = str(self.data_dir)
        return {"KUBECONFIG": str(self.kubeconfig), "HOME": home, "PATH": os.environ["PATH"]}


def start_api(
    data_dir: Path, *, port: int = 0, **environment: str
) -> tuple[subprocess.Popen[str], LocalApi]:
    """Start the server, on a free port by default, and wait until it prints that it is ready."""
    command = [sys.executable, "-m", "slipway_localcluster", "--data-dir", str(data_dir)]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--no-controllers"],
        cwd=_ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "ready" in line, f"the local cluster did not start: {line!r}"
    kubeconfig = data_dir / "kubeconfig"
    config = json.loads(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = data_dir / "client-ca.crt"
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    token = config["users"][0]["user"]["token"]
    return process, LocalApi(cluster["server"], token, authority, kubeconfig, data_dir)


def stop_api(process: subprocess.Popen[str]) -> None:
    process.terminate()
    started = time.monotonic()
    process.wait(timeout=15)
    assert time.monotonic() - started < 10
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture(scope="session")
def local_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApi]:
    """A running API without controllers, so objects stay as they are written."""
    process, api = start_api(tmp_path_factory.mktemp("local-api"))
    yield api
    stop_api(process)


@pytest.fixture(scope="session")
def http(local_api: LocalApi) -> Iterator[httpx.Client]:
    with local_api.client() as client:
        yield client


@pytest.fixture
def namespace(http: httpx.Client, request: pytest.FixtureRequest) -> str:
    """A namespace of its own for each test."""
    number = abs(hash(request.node.nodeid)) % 10**9
    name = f"ns-{number}-{time.monotonic_ns() % 10**6}"
    answer = http.post("/api/v1/namespaces", json={"metadata": {"name": name}})
    assert answer.status_code == 201, answer.text
    return name
