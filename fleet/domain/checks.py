"""The lines of a connection test, and what a cluster's API groups make possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.domain.cluster_errors import ClusterError, Refused, Throttled

_GROUPS = {
    "has_kserve": "serving.kserve.io",
    "has_gateway_api": "gateway.networking.k8s.io",
    "has_knative": "serving.knative.dev",
    "has_keda": "keda.sh",
    "has_karpenter": "karpenter.sh",
    "has_istio": "networking.istio.io",
    "has_prometheus_operator": "monitoring.coreos.com",
}


@dataclass(frozen=True, slots=True)
class Check:
    """`ok` None is not known; `fix` says what to do when it is not ok."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def explain(error: ClusterError) -> Check:
    """What stands in the way of reaching a cluster, and how to mend it."""
    if isinstance(error, Refused):
        return Check(
            "Signed in",
            ok=False,
            detail=error.message,
            fix="Renew the credentials, or give the portal's account a role that may read nodes and "
            "pods and write what it deploys.",
        )
    if isinstance(error, Throttled):
        return Check(
            "Answers", ok=None, detail=error.message, fix="It is busy: try again in a minute."
        )
    return Check(
        "Answers",
        ok=False,
        detail=error.message,
        fix="Check the address in the kubeconfig, the network between here and there, and that the "
        "certificate authority in it is the cluster's.",
    )


def capabilities(
    version: str, groups: Mapping[str, Sequence[str]], gpu_resources: Sequence[str]
) -> dict[str, Any]:
    """What works on the cluster; `notes` say what does not, and why."""
    found: dict[str, Any] = {
        "version": version,
        "groups": {name: list(versions) for name, versions in sorted(groups.items())},
        "gpu_resources": sorted(gpu_resources),
    }
    found |= {flag: group in groups for flag, group in _GROUPS.items()}
    found["engines"] = ["kserve-triton", "triton"] if found["has_kserve"] else ["triton"]
    found["notes"] = _notes(found)
    return found


def _notes(found: Mapping[str, Any]) -> list[str]:
    notes = []
    if not found["has_kserve"]:
        notes.append("KServe is not installed: only the triton engine works.")
    if not found["has_gateway_api"]:
        notes.append("Gateway API is not installed: no stable URL and no canary.")
    if not found["has_keda"]:
        notes.append("KEDA is not installed: no scaling on queue length or GPU metrics.")
    if not found["gpu_resources"]:
        notes.append("No node offers GPUs now.")
    return notes
