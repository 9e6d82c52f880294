"""Send requests to one revision, bypassing the route: to one of its pods, through the API server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from deployments.manifests.domain import metadata
from deployments.models import Revision
from deployments.serving.services import synthetic_requests
from fleet.clusters.domain.capabilities import Capabilities
from fleet.kube.domain.errors import ClusterError
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.kube.services import objects, pod_proxy

HTTP_PORT: Final = 8080
_SECONDS: Final = 10.0
_REFUSED: Final = 400
# From a proxy in between, or a model that is not up: trying again can help.
_RETRYABLE: Final = frozenset({408, 425, 429, 502, 503, 504})


class NotAnswered(Exception):
    """The revision gave no response of its own; the message says why, for people."""


def infer(revision: Revision, request: dict[str, Any]) -> PodResponse:
    """Send an inference request to a pod of the revision. A status of 400 or above is the model's own response.
    Raises NotAnswered.
    """
    model = revision.version.model.name
    return send(revision, f"v2/models/{model}/infer", json.dumps(request).encode())


def reported_model(revision: Revision) -> dict[str, Any]:
    """Return the metadata of the model as its server reports it. Raises NotAnswered."""
    answer = send(revision, f"v2/models/{revision.version.model.name}")
    try:
        model_metadata = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise NotAnswered("its server returned invalid JSON") from error
    if answer.status >= _REFUSED or not isinstance(model_metadata, dict):
        raise NotAnswered(f"its server returned HTTP {answer.status} for the model metadata")
    return model_metadata


def send(
    revision: Revision,
    path: str,
    body: bytes | None = None,
    *,
    port: int = HTTP_PORT,
    headers: Mapping[str, str] | None = None,
) -> PodResponse:
    """Send a request to a ready pod of the revision. A body is JSON unless `headers` say otherwise. Raises NotAnswered."""
    deployment = revision.deployment
    try:
        pod = _ready_pod(revision)
        answer = pod_proxy.send(
            cluster_id=deployment.cluster_id,
            call=PodRequest(deployment.namespace, pod, port, path, body, _SECONDS, headers or {}),
        )
    except ClusterError as error:
        raise NotAnswered(_describe_failure(error, revision)) from error
    if answer.status in _RETRYABLE:
        raise NotAnswered(f"pod {pod} returned HTTP {answer.status}")
    if body is not None and answer.status < _REFUSED:
        synthetic_requests.note(revision)
    return answer


def _describe_failure(error: ClusterError, revision: Revision) -> str:
    """Describe the failure. If a network policy kept the API server out at the last probe of the cluster, the
    text names it and its fix.
    """
    capabilities = Capabilities.from_json(revision.deployment.cluster.capabilities)
    admitted = capabilities.feature("pod-proxy")
    if admitted.is_there is not False:
        return error.message
    fix = "add its networks to the serving policy of the cluster"
    return f"{error.message.rstrip('.')}. {admitted.why}: {fix}"


def _ready_pod(revision: Revision) -> str:
    """Return the first ready pod by name: every pod of a revision serves the same bytes."""
    pods = objects.list_objects(
        cluster_id=revision.deployment.cluster_id,
        api_version="v1",
        kind="Pod",
        namespace=revision.deployment.namespace,
        labels={metadata.WORKLOAD_LABEL: revision.workload_name},
    )
    ready = sorted(pod["metadata"]["name"] for pod in pods if _is_ready(pod))
    if not ready:
        raise NotAnswered(f"no pod of r{revision.number} is ready")
    return str(ready[0])


def _is_ready(pod: dict[str, Any]) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
