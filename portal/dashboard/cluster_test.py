"""Tries a cluster now and says in words what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.domain import cluster_errors
from fleet.services import objects


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a `{% checks %}` list."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def explain(*, cluster_id: int) -> Sequence[Step]:
    """From reaching it to what the portal needs there. Stops at the first thing that fails."""
    try:
        found = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="Namespace",
            namespace=None,
            name="default",
        )
    except cluster_errors.ClusterError as error:
        return [_refusal(error)]
    detail = "The API server answered" + (" and shows namespaces." if found else ".")
    return [Step("Reachable and signed in", ok=True, detail=detail)]


def _refusal(error: cluster_errors.ClusterError) -> Step:
    if isinstance(error, cluster_errors.Refused):
        fix = "Give the portal's account the role it needs, or renew its credentials."
        return Step("Reachable, but refused", ok=False, detail=str(error), fix=fix)
    if isinstance(error, cluster_errors.Throttled):
        fix = "Try again in a minute."
        return Step("Reachable, but throttled", ok=None, detail=str(error), fix=fix)
    fix = "Check the address in the kubeconfig, the network to it, and the certificate."
    return Step("Not reachable", ok=False, detail=str(error), fix=fix)
