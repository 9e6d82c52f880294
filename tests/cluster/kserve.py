"""One release of KServe: its kinds, its controllers as processes, its admission webhooks.

Everything comes from the modules that the controllers are built from: schemas, roles, webhook
configurations and the runtimes that it ships.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from slipway_localcluster.controllers import free_ports
from tests.cluster.build import Build
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl

Manifest = dict[str, Any]

_NAMESPACE = "kserve"
_CRD = "CustomResourceDefinition"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_ACCESS = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
# What differs from the configuration that KServe ships.
_CONFIGURATION = {
    "deploy": {"defaultDeploymentMode": "Standard"},
    # The portal's own route leads to the pods.
    "ingress": {"enableGatewayApi": False, "disableIngressCreation": True},
}


@dataclass(frozen=True, slots=True)
class Controller:
    """`kinds` is a part of the paths of its webhooks; the manager has those of all other kinds."""

    program: str
    deployment: str
    kinds: str


_CONTROLLERS = (
    Controller("kserve-llmisvc", "llmisvc-controller-manager", "llminferenceservice"),
    Controller("kserve-localmodel", "kserve-localmodel-controller-manager", "localmodel"),
    Controller("kserve-manager", "kserve-controller-manager", ""),
)


class KServe:
    def __init__(self, build: Build, control_plane: ControlPlane) -> None:
        self._build = build
        self._control_plane = control_plane
        self._admin = Kubectl(control_plane.admin)
        self._shipped = build.manifests("kserve")
        self._ports = dict(
            zip((item.program for item in _CONTROLLERS), free_ports.take(3), strict=True)
        )

    def install(self, stack: ExitStack, other_schemas: Path | None) -> None:
        """`other_schemas`: a folder of CRDs of kinds that KServe's modules lack."""
        self._admin.apply([_namespace()])
        self._install_kinds(other_schemas)
        access = [item for item in self._shipped if item["kind"] in _ACCESS]
        self._admin.apply([*access, self._configuration()])
        for controller in _CONTROLLERS:
            if controller.program in self._build.artifact.programs:
                self._start(stack, controller)
        self._admin.apply(self._webhooks())
        self._admin.apply(_in_namespace(self._build.manifests("runtimes")))

    def _install_kinds(self, other_schemas: Path | None) -> None:
        own = [*self._shipped, *self._build.manifests("schemas")]
        kinds = {item["metadata"]["name"]: item for item in other_kinds(other_schemas)}
        kinds |= {item["metadata"]["name"]: item for item in own if item["kind"] == _CRD}
        for kind in kinds.values():
            conversion = kind["spec"].get("conversion", {})
            if "webhook" in conversion:
                client = self._client_config("kserve-llmisvc", "/convert")
                conversion["webhook"]["clientConfig"] = client
        self._admin.apply(kinds.values())
        self._admin.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

    def _configuration(self) -> Manifest:
        (shipped,) = [item for item in self._shipped if item["kind"] == "ConfigMap"]
        data = {key: value for key, value in shipped["data"].items() if key != "_example"}
        for key, changes in _CONFIGURATION.items():
            data[key] = json.dumps(json.loads(data[key]) | changes)
        return {**shipped, "data": data}

    def _start(self, stack: ExitStack, controller: Controller) -> None:
        """The controller runs with the permissions of its own service account."""
        program = controller.program
        (deployment,) = [
            item
            for item in self._shipped
            if (item["kind"], item["metadata"]["name"]) == ("Deployment", controller.deployment)
        ]
        self._admin.apply([_versioned(deployment, self._build.artifact.release)])
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        plane = self._control_plane
        kubeconfig = plane.token_kubeconfig(program, self._admin.token(_NAMESPACE, account))
        temporary = plane.folder / program
        _place_certificate(plane, temporary, program)
        metrics, health = free_ports.take(2)
        server = plane.start(
            stack,
            [
                self._build.program(program),
                f"--kubeconfig={kubeconfig}",
                f"--webhook-port={self._ports[program]}",
                f"--metrics-addr=127.0.0.1:{metrics}",
                f"--health-probe-addr=127.0.0.1:{health}",
                "--leader-elect=false",
            ],
            POD_NAMESPACE=_NAMESPACE,
            TMPDIR=str(temporary),
        )
        server.wait_until_ready(f"http://127.0.0.1:{health}/healthz")
        server.wait_until_listening(self._ports[program])

    def _webhooks(self) -> Iterator[Manifest]:
        """Those of the controllers that run here."""
        for item in self._shipped:
            if item["kind"] not in _WEBHOOKS:
                continue
            item["metadata"].pop("annotations", None)
            for webhook in item["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                program = next(one.program for one in _CONTROLLERS if one.kinds in path)
                webhook["clientConfig"] = self._client_config(program, path)
            if program in self._build.artifact.programs:
                yield item

    def _client_config(self, program: str, path: str) -> Manifest:
        url = f"https://127.0.0.1:{self._ports[program]}{path}"
        return {"url": url, "caBundle": self._control_plane.authority.bundle}


def _namespace() -> Manifest:
    labels = {"control-plane": "kserve-controller-manager"}
    metadata = {"name": _NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def other_kinds(folder: Path | None) -> Iterator[Manifest]:
    for path in sorted(folder.glob("*.yaml")) if folder else ():
        yield yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


def _versioned(deployment: Manifest, release: str) -> Manifest:
    """The Deployment in which the portal reads the release. Its controller runs here, not as a pod."""
    spec = deployment["spec"]
    for container in spec["template"]["spec"]["containers"]:
        container["image"] = f"{container['image'].rpartition(':')[0]}:{release}"
    return {**deployment, "spec": {**spec, "replicas": 0}}


def _place_certificate(plane: ControlPlane, temporary: Path, program: str) -> None:
    """Where controller-runtime looks for that of its webhook server."""
    folder = temporary / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(parents=True)
    pair = plane.authority.sign(program)
    shutil.copy(pair.certificate, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")


def _in_namespace(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    for item in manifests:
        item["metadata"]["namespace"] = _NAMESPACE
        if item["kind"].startswith("Cluster"):
            del item["metadata"]["namespace"]
        yield item


def named_folder() -> Path | None:
    """The folder of CRDs that SLIPWAY_CRD_DIR names."""
    named = os.environ.get("SLIPWAY_CRD_DIR")
    return Path(named) if named else None
