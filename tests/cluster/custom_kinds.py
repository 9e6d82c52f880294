"""The smaller lane: etcd and the API server of custom kinds alone, built in minutes where all of Kubernetes takes long.

It stores every custom kind by its schema and CEL rules, strictly. It has no kinds of Kubernetes itself, no webhooks, no
controllers and no accounts.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import ssl
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from slipway_localcluster.controllers import free_ports
from tests.cluster import build, kserve
from tests.cluster.build import Artifact, Build
from tests.cluster.certificates import Authority, write_kubeconfig
from tests.cluster.kserve import Manifest
from tests.cluster.processes import Server
from tests.cluster.waiting import wait_until

# However little time is left: CI without any API server proves nothing.
LEAST_MINUTES: Final = 15.0
# What a run of this lane can prove.
TESTS: Final = "tests/cluster/test_custom_kinds.py"
# Says where it is, in a run of this lane.
IS_ALONE: Final = "SLIPWAY_TEST_CUSTOM_KINDS_ALONE"
_TRIES: Final = 5
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_LOOPBACK: Final = "127.0.0.1"
_CRD: Final = "CustomResourceDefinition"
_CRDS: Final = "customresourcedefinitions"
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


class Refused(Exception):
    """What the server said."""


@dataclass(frozen=True, slots=True)
class Store:
    """Its administrator. kubectl and other clients first ask for kinds of Kubernetes, which it has none of."""

    url: str
    # One file with certificate and key, and that of the authority.
    client: Path
    authority: Path

    def apply(self, manifest: Manifest, *, plural: str = "", dry_run: bool = False) -> Manifest:
        """Server-side and strict, as the portal applies. Raises Refused."""
        metadata = manifest["metadata"]
        group, _, version = manifest["apiVersion"].partition("/")
        where = f"/apis/{group}/{version}"
        if "namespace" in metadata:
            where += f"/namespaces/{metadata['namespace']}"
        plural = plural or self.plurals()[group, manifest["kind"]]
        query = {"fieldManager": "slipway", "force": "true", "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        path = f"{where}/{plural}/{metadata['name']}?{urllib.parse.urlencode(query)}"
        return self._ask("PATCH", path, manifest)

    def kinds(self) -> list[Manifest]:
        return list(self._ask("GET", f"/apis/apiextensions.k8s.io/v1/{_CRDS}")["items"])

    def plurals(self) -> dict[tuple[str, str], str]:
        """By group and kind."""
        specs = [item["spec"] for item in self.kinds()]
        return {(spec["group"], spec["names"]["kind"]): spec["names"]["plural"] for spec in specs}

    def are_served(self) -> bool:
        return all(
            any(
                (row["type"], row["status"]) == ("Established", "True")
                for row in (item.get("status") or {}).get("conditions") or ()
            )
            for item in self.kinds()
        )

    def _ask(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        for _ in range(_TRIES):
            answer = _client_of(self).request(method, path, json=body, headers=_APPLY)
            # On a busy machine, while it reads new kinds.
            if answer.status_code not in (
                httpx.codes.GATEWAY_TIMEOUT,
                httpx.codes.TOO_MANY_REQUESTS,
            ):
                break
        if answer.is_error:
            raise Refused(answer.json()["message"])
        return dict(answer.json())


@functools.cache
def _client_of(store: Store) -> httpx.Client:
    """One connection for all that is sent."""
    context = ssl.create_default_context(cafile=str(store.authority))
    context.load_cert_chain(store.client)
    return httpx.Client(base_url=store.url, verify=context, timeout=60, trust_env=False)


@contextmanager
def running(server: Build, schemas: Build) -> Iterator[Store]:
    """Every kind is there."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="slipway-custom-kinds-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        store = _start(stack, server, folder)
        kinds = {
            item["metadata"]["name"]: item for item in kserve.other_kinds(kserve.named_folder())
        }
        for name in schemas.artifact.manifests:
            shipped = (item for item in schemas.manifests(name) if item["kind"] == _CRD)
            kinds |= {item["metadata"]["name"]: item for item in shipped}
        for kind in kinds.values():
            # No controller runs that would convert.
            kind["spec"].pop("conversion", None)
            store.apply(kind, plural=_CRDS)
        wait_until(store.are_served, store.kinds)
        yield store


def store_of_environment() -> Store | None:
    """The one of a run of this lane."""
    named = os.environ.get(IS_ALONE, "")
    if not named:
        return None
    url, client, authority = json.loads(named)
    return Store(url, Path(client), Path(authority))


def environment_of(store: Store) -> dict[str, str]:
    return {IS_ALONE: json.dumps([store.url, str(store.client), str(store.authority)])}


def _start(stack: ExitStack, server: Build, folder: Path) -> Store:
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


def _start_api_server(stack: ExitStack, server: Build, folder: Path, etcd: str) -> Store:
    authority = Authority(folder / "pki")
    port = free_ports.take_one()
    url = f"https://{_LOOPBACK}:{port}"
    serving = authority.sign("apiextensions-apiserver")
    # Of the group that may do everything without an authoriser being asked.
    admin = authority.sign("admin", group="system:masters")
    both = folder / "admin.pem"
    both.touch(mode=0o600)
    both.write_bytes(admin.certificate.read_bytes() + admin.key.read_bytes())
    kubeconfig = write_kubeconfig(
        folder / "admin.kubeconfig", server=url, authority=authority, pair=admin
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
    return Store(url, both, authority.path)


_ADMISSION: Final = (
    "NamespaceLifecycle",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
