"""Objects on a cluster, by cluster id. Raises the ClusterErrors of fleet.domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fleet.domain.cluster_errors import ObjectNotFound
from fleet.domain.kinds import Manifest
from fleet.services import clients

# What later objects of one push may need to exist.
_FIRST = frozenset({"Namespace", "ServiceAccount", "Secret", "ConfigMap", "ServingRuntime"})
_THREADS = 8


def apply(
    *,
    cluster_id: int,
    manifests: Sequence[Manifest],
    dry_run: bool = False,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Server-side apply; the result has the order of `manifests`.

    Namespaces and what pods need go first, one after another; the others go side by side.
    The first refusal is raised, after those that were already under way.
    """
    client = clients.client_for(cluster_id)

    def push(index: int) -> None:
        results[index] = client.apply(manifests[index], dry_run=dry_run, force=force)

    results: dict[int, dict[str, Any]] = {}
    early = [i for i, manifest in enumerate(manifests) if manifest["kind"] in _FIRST]
    late = [i for i in range(len(manifests)) if i not in set(early)]
    for index in early:
        push(index)
    if len(late) == 1:
        push(late[0])
    elif late:
        with ThreadPoolExecutor(min(_THREADS, len(late))) as pool:
            for done in [pool.submit(push, index) for index in late]:
                done.result()
    return [results[index] for index in range(len(manifests))]


def get(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> dict[str, Any] | None:
    client = clients.client_for(cluster_id)
    try:
        return client.get(client.resource_type(api_version, kind), namespace, name)
    except ObjectNotFound:
        return None


def list_objects(
    *,
    cluster_id: int,
    api_version: str,
    kind: str,
    namespace: str | None,
    labels: Mapping[str, str],
) -> list[dict[str, Any]]:
    client = clients.client_for(cluster_id)
    found = client.list_all(
        client.resource_type(api_version, kind), namespace=namespace, labels=labels
    )
    return found.items


def delete(
    *, cluster_id: int, api_version: str, kind: str, namespace: str | None, name: str
) -> None:
    """Absent is fine: what was asked for is so."""
    client = clients.client_for(cluster_id)
    try:
        client.delete(client.resource_type(api_version, kind), namespace, name)
    except ObjectNotFound:
        return


def pod_log(*, cluster_id: int, namespace: str, pod: str, tail_lines: int) -> str:
    return clients.client_for(cluster_id).pod_log(namespace, pod, tail_lines=tail_lines)
