"""The whole cluster as one context: control plane, KServe, and the portal's account."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import kserve
from tests.cluster.build import Build
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kserve import KServe
from tests.cluster.kubectl import Kubectl

PORTAL_NAMESPACE, PORTAL_ACCOUNT = "slipway", "portal"


@dataclass(frozen=True, slots=True)
class Cluster:
    """`portal` is the kubeconfig of an account that has no permission yet."""

    control_plane: ControlPlane
    portal: Path

    @property
    def admin(self) -> Kubectl:
        return Kubectl(self.control_plane.admin)


@contextmanager
def running(control_plane: Build, serving: Build) -> Iterator[Cluster]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="slipway-cluster-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        plane = stack.enter_context(ControlPlane(control_plane, folder))
        KServe(serving, plane).install(stack, kserve.named_folder())
        wait_for_storage(Kubectl(plane.admin))
        yield Cluster(plane, _portal_account(plane))


def wait_for_storage(admin: Kubectl) -> None:
    """A server answers 429 to a list, "storage is (re)initializing", until it has read all objects of a
    kind; kubectl tries again for as long as it says.
    """
    listed = admin.run("api-resources", "--verbs=list", "--output=name").split()
    admin.run("get", ",".join(listed), "--all-namespaces", "--output=name", "--ignore-not-found")


def _portal_account(plane: ControlPlane) -> Path:
    admin = Kubectl(plane.admin)
    metadata = {"name": PORTAL_ACCOUNT, "namespace": PORTAL_NAMESPACE}
    admin.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PORTAL_NAMESPACE}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        ]
    )
    return plane.token_kubeconfig("portal", admin.token(PORTAL_NAMESPACE, PORTAL_ACCOUNT))
