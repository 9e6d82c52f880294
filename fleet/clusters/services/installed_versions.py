"""Versions of installed products, by the Deployments of their controllers."""

from __future__ import annotations

import re

from fleet.clusters.domain.controllers import CONTROLLERS
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.gateways.kube_client import KubeClient

_TAG = re.compile(r"v?\d+(\.\d+)+[-\w.]*")


def read_version(client: KubeClient, name: str) -> str:
    """Return the version of the controller's Deployment; empty without permission to read it."""
    for namespace, deployment in CONTROLLERS.get(name, ()):
        try:
            controller = client.get(resource_types.DEPLOYMENT, namespace, deployment)
        except (NotAllowed, ObjectNotFound):
            continue
        label = (controller["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "")
        if _TAG.fullmatch(label):
            return str(label)
        containers = controller["spec"]["template"]["spec"]["containers"]
        tags = [
            str(container.get("image", "")).partition("@")[0].rpartition(":")[2]
            for container in containers
        ]
        return next((tag for tag in tags if _TAG.fullmatch(tag)), "")
    return ""
