"""KServe's cache of a version on the nodes, so that a new pod does not download it again."""

from __future__ import annotations

import hashlib

from deployments.manifests.domain import vllm
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
)

# KServe only compares it with the capacity of the node group.
_LEAST_MIB = 1


def local_model_cache(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the cache of a source address. There is one per address: a node group refuses two caches of the
    same source.

    All revisions of a version share it, so it has no revision's labels and outlives each of them.
    """
    llm = served.spec.llm
    uri = served.storage_uri if llm is None else vllm.weights_uri(served, llm)
    token = hashlib.sha256(uri.encode()).hexdigest()[:16]
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LocalModelCache",
        "metadata": {
            "name": f"slipway-{token}",
            "labels": {**MANAGED_BY, "slipway.dev/team": context.team},
        },
        "spec": {
            "sourceModelUri": uri,
            "modelSize": f"{max(served.size_mib, _LEAST_MIB)}Mi",
            "nodeGroups": [context.cache_node_group],
            "serviceAccountName": account_of(served),
        },
    }
