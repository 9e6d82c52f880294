"""Kueue's manager as a process, with what it ships: kinds, access, webhooks and the visibility API."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from slipway_localcluster.controllers import free_ports
from tests.cluster.build import Build
from tests.cluster.kubectl import Kubectl
from tests.cluster.kueue.artifact import VISIBILITY_FOLDER
from tests.cluster.processes import Server
from tests.cluster.waiting import wait_until

Manifest = dict[str, Any]

NAMESPACE, _ACCOUNT = "kueue-system", "kueue-controller-manager"
_CERTIFICATE = "kueue-webhook-server-cert"
_WEBHOOK, _VISIBILITY = "kueue-webhook-service", "kueue-visibility-server"
_CRD = "CustomResourceDefinition"
_ACCESS = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_OF_NAMESPACES = "localqueues.kueue.x-k8s.io,workloads.kueue.x-k8s.io"
_OF_CLUSTER = "clusterqueues,resourceflavors,workloadpriorityclasses"


@contextmanager
def running(build: Build, admin: Kubectl, folder: Path) -> Iterator[Callable[[], str]]:
    """Yields a function that returns the end of its log. Afterwards no webhook, API or queue of it is left."""
    ports = dict(zip((_WEBHOOK, _VISIBILITY, "health"), free_ports.take(3), strict=True))
    shipped = build.manifests("kueue")
    with ExitStack() as stack:
        stack.callback(_remove_hooks, admin, shipped)
        _install(admin, shipped, build.artifact.release, ports)
        certificates = folder / "certificates"
        certificates.mkdir()
        (folder / VISIBILITY_FOLDER).mkdir()
        command: list[str | Path] = [
            build.program("kueue"),
            f"--config={_configuration(shipped, folder, certificates, ports)}",
            f"--kubeconfig={admin.kubeconfig_of(NAMESPACE, _ACCOUNT, folder / 'kueue.kubeconfig')}",
            "--zap-log-level=2",
        ]
        manager = Server(command, folder=folder)
        stack.callback(manager.stop)
        _mount_certificate(admin, certificates, manager.log_tail)
        manager.wait_until_ready(f"http://127.0.0.1:{ports['health']}/readyz")
        manager.wait_until_listening(ports[_VISIBILITY])
        names = [item["metadata"]["name"] for item in shipped if item["kind"] == "APIService"]
        apis = [f"apiservice/{name}" for name in names]
        admin.run("wait", "--for=condition=Available", *apis, "--timeout=60s")
        # While it runs: it removes its finalizers.
        stack.callback(admin.run, "delete", _OF_CLUSTER, "--all", "--timeout=60s")
        everywhere = ("--all", "--all-namespaces", "--timeout=60s")
        stack.callback(admin.run, "delete", _OF_NAMESPACES, *everywhere)
        yield manager.log_tail


def _install(admin: Kubectl, shipped: list[Manifest], release: str, ports: dict[str, int]) -> None:
    """As Kueue ships it; its Deployment is the process here, which its Services lead to."""
    admin.apply([item for item in shipped if item["kind"] == "Namespace"])
    kinds = [_with_ports(item, ports) for item in shipped if item["kind"] == _CRD]
    admin.apply([*kinds, *(item for item in shipped if item["kind"] in (*_ACCESS, "Secret"))])
    admin.apply([_versioned(item, release) for item in shipped if item["kind"] == "Deployment"])
    names = [f"crd/{item['metadata']['name']}" for item in kinds]
    admin.run("wait", "--for=condition=Established", *names, "--timeout=60s")
    hooks = [item for item in shipped if item["kind"] in ("APIService", *_WEBHOOKS)]
    admin.apply([*_services(), *(_with_ports(item, ports) for item in hooks)])


def _versioned(deployment: Manifest, release: str) -> Manifest:
    """In which the portal reads the release. Its manager runs here, not as a pod."""
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    container["image"] = f"registry.k8s.io/kueue/kueue:{release}"
    return {**deployment, "spec": {**spec, "replicas": 0}}


def _services() -> Iterator[Manifest]:
    """A Service by name may stand for this machine; Endpoints must not hold a loopback address."""
    for name in (_WEBHOOK, _VISIBILITY):
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }


def _with_ports(item: Manifest, ports: dict[str, int]) -> Manifest:
    """With the port of this machine wherever it names a Service of Kueue."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(one) for one in value]
        if not isinstance(value, dict):
            return value
        converted = {key: convert(one) for key, one in value.items()}
        if value.get("namespace") == NAMESPACE and value.get("name") in ports:
            converted["port"] = ports[value["name"]]
        return converted

    return {**item, "spec": convert(item["spec"])} if "spec" in item else convert(item)


def _configuration(
    shipped: list[Manifest], folder: Path, certificates: Path, ports: dict[str, int]
) -> Path:
    """The shipped one; only addresses differ, and that no other replica is waited for."""
    (stored,) = [item for item in shipped if item["kind"] == "ConfigMap"]
    settings = yaml.safe_load(stored["data"]["controller_manager_config.yaml"])
    local = "127.0.0.1"
    settings["health"]["healthProbeBindAddress"] = f"{local}:{ports['health']}"
    settings["metrics"]["bindAddress"] = f"{local}:{free_ports.take_one()}"
    settings["webhook"] = {"host": local, "port": ports[_WEBHOOK], "certDir": str(certificates)}
    settings["visibilityServer"] = {"bindAddress": local, "bindPort": ports[_VISIBILITY]}
    settings["leaderElection"]["leaderElect"] = False
    path = folder / "kueue.yaml"
    # JSON is YAML.
    path.write_text(json.dumps(settings))
    return path


def _mount_certificate(admin: Kubectl, folder: Path, why: Callable[[], str]) -> None:
    """As a kubelet mounts the Secret, once Kueue has made its certificate."""

    def data() -> dict[str, str]:
        stored = admin.get("secret", _CERTIFICATE, f"--namespace={NAMESPACE}")
        return stored.get("data") or {}

    wait_until(lambda: "tls.crt" in data(), why)
    for name, value in data().items():
        (folder / name).write_bytes(base64.b64decode(value))


def _remove_hooks(admin: Kubectl, shipped: list[Manifest]) -> None:
    """What would keep waiting for a manager that has ended."""
    for kind in ("APIService", *_WEBHOOKS):
        names = [item["metadata"]["name"] for item in shipped if item["kind"] == kind]
        admin.run("delete", kind, *names, "--ignore-not-found")
    for item in shipped:
        if item["kind"] == _CRD:
            alone = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            admin.patch("crd", item["metadata"]["name"], patch=alone)
