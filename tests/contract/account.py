"""The portal's account on a named cluster, with what `manage.py cluster_rbac` prints and no more.

SLIPWAY_TEST_ADMIN_KUBECONFIG names the administrator who makes namespaces and grants access in them,
as the administrators of teams do. Without it the user of the kubeconfig must be allowed to do both.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from django.core.management import call_command

from fleet.kube.services import clients
from tests.cluster.kubectl import Kubectl
from tests.cluster.running import PORTAL_ACCOUNT, PORTAL_NAMESPACE
from tests.waiting import wait_for

_GATEWAY_NAMESPACE = "slipway-gateway"
_FIRST_NAMESPACE = "slipway-contract"
_HAVE_GRANTED: set[Kubectl] = set()


def administrator() -> Kubectl | None:
    named = os.environ.get("SLIPWAY_TEST_ADMIN_KUBECONFIG", "")
    return Kubectl(Path(named)) if named else None


def cluster_rbac(*arguments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("cluster_rbac", *arguments, stdout=out)
    return list(yaml.safe_load_all(out.getvalue()))


def grant_reading(admin: Kubectl, cluster_id: int) -> None:
    """What the portal may do in the whole cluster, with a first namespace: a test that reads nodes may
    be the first one of its process.
    """
    if admin not in _HAVE_GRANTED:
        make_namespaces(admin, cluster_id, [_FIRST_NAMESPACE])
        _HAVE_GRANTED.add(admin)


def make_namespaces(admin: Kubectl, cluster_id: int, names: Sequence[str]) -> None:
    """Namespaces of teams, in which the portal may do what the command grants; and the gateway's, in
    which it reads the proxies' counters.
    """
    manifests = [_namespace(name) for name in (*names, _GATEWAY_NAMESPACE)]
    account = f"{PORTAL_NAMESPACE}/{PORTAL_ACCOUNT}"
    granted = cluster_rbac("--service-account", account, "--fleet-actions", "--namespaces", *names)
    admin.apply([*manifests, *granted])
    for verb in ("list", "get", "patch"):
        _wait_for_grant(cluster_id, {"group": "", "resource": "nodes", "verb": verb})
    for name in names:
        writing = {"group": "", "resource": "services", "verb": "patch", "namespace": name}
        _wait_for_grant(cluster_id, writing)


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _wait_for_grant(cluster_id: int, attributes: dict[str, str]) -> None:
    """The API server learns of new roles a moment after it has stored them."""
    wait_for(
        f"grant for the portal: {attributes}",
        lambda: clients.client_for(cluster_id).may(attributes),
    )
