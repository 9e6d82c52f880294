"""The smaller lane: etcd and the API server of custom kinds alone, built in minutes where all of Kubernetes takes long.

It stores every custom kind by its schema and CEL rules, strictly. It has no kinds of Kubernetes itself, no webhooks, no
controllers and no accounts.
"""

from __future__ import annotations

import shutil
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet.localcluster.controllers import free_ports
from tests.cluster import build, kserve
from tests.cluster.build import Artifact, Build
from tests.cluster.certificates import Authority, write_kubeconfig
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import Server

# However little time is left: CI without any API server proves nothing.
LEAST_MINUTES: Final = 15.0
# What a run of this lane can prove.
TESTS: Final = "tests/cluster/test_custom_kinds.py"
# Set where nothing else runs.
IS_ALONE: Final = "SLIPWAY_TEST_CUSTOM_KINDS_ALONE"
_LOOPBACK: Final = "127.0.0.1"
_CRD: Final = "CustomResourceDefinition"
_EXTENSIONS: Final = "k8s.io/apiextensions-apiserver"


@dataclass(frozen=True, slots=True)
class PartOf(Artifact):
    """Something of the module that another artifact is built from."""

    module_name: str = ""

    @property
    def folder(self) -> Path:
        return build.CONTROL_PLANE.folder.with_name(self.module_name)


SERVER: Final = PartOf(
    name="custom-kinds",
    release_of=build.CONTROL_PLANE.release_of,
    programs={
        "etcd": build.CONTROL_PLANE.programs["etcd"],
        "apiextensions-apiserver": _EXTENSIONS,
    },
    module_name=build.CONTROL_PLANE.name,
)
SCHEMAS: Final = PartOf(
    name="custom-kinds-schemas",
    release_of=build.KSERVE.release_of,
    programs={},
    manifests={name: build.KSERVE.manifests[name] for name in ("schemas", "kserve")},
    module_name=build.KSERVE.name,
)


@contextmanager
def running(server: Build, schemas: Build) -> Iterator[Kubectl]:
    """Yields its administrator; every kind is there."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="slipway-custom-kinds-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        admin = Kubectl(_start(stack, server, folder))
        kinds = {
            item["metadata"]["name"]: item for item in kserve.other_kinds(kserve.named_folder())
        }
        for name in schemas.artifact.manifests:
            shipped = (item for item in schemas.manifests(name) if item["kind"] == _CRD)
            kinds |= {item["metadata"]["name"]: item for item in shipped}
        for kind in kinds.values():
            # No controller runs that would convert.
            kind["spec"].pop("conversion", None)
        admin.apply(kinds.values())
        admin.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield admin


def _start(stack: ExitStack, server: Build, folder: Path) -> Path:
    client, peer = (f"http://{_LOOPBACK}:{port}" for port in free_ports.take(2))
    etcd = Server(
        [
            server.program("etcd"),
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync=true",
            "--log-level=warn",
        ],
        folder=folder,
    )
    stack.callback(etcd.stop)
    etcd.wait_until_ready(f"{client}/health")
    return _start_api_server(stack, server, folder, client)


def _start_api_server(stack: ExitStack, server: Build, folder: Path, etcd: str) -> Path:
    authority = Authority(folder / "pki")
    port = free_ports.take_one()
    url = f"https://{_LOOPBACK}:{port}"
    serving = authority.sign("apiextensions-apiserver")
    # Of the group that may do everything without an authoriser being asked.
    kubeconfig = write_kubeconfig(
        folder / "admin.kubeconfig",
        server=url,
        authority=authority,
        pair=authority.sign("admin", group="system:masters"),
    )
    api = Server(
        [
            server.program("apiextensions-apiserver"),
            f"--etcd-servers={etcd}",
            f"--bind-address={_LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={authority.path}",
            # It expects a server of Kubernetes beside it. There is none, so these name itself and are not asked.
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--authentication-skip-lookup=true",
            "--enable-priority-and-fairness=false",
            "--disable-admission-plugins=" + ",".join(_ADMISSION),
        ],
        folder=folder,
    )
    stack.callback(api.stop)
    api.wait_until_ready(f"{url}/livez", ssl.create_default_context(cafile=str(authority.path)))
    return kubeconfig


_ADMISSION: Final = (
    "NamespaceLifecycle",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
