"""Add the step of the server's start to a pod that loads: Kubernetes knows only that its container runs.

Only pods of language models that are not ready cost a request.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

from deployments.delivery.domain import language_start
from deployments.delivery.services.observe import DeploymentObservation
from deployments.models import Deployment
from deployments.spec.domain.engines import LLM_ENGINES
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects

logger = logging.getLogger(__name__)

_LINES = 200
Json = dict[str, Any]


def explain(deployment: Deployment, observation: DeploymentObservation) -> DeploymentObservation:
    """Fill in a message of the running container of at most one pod of each revision."""
    loading = {
        revision.number: pod
        for revision in (
            deployment.stable_revision,
            deployment.candidate_revision,
            deployment.baseline_revision,
        )
        if revision is not None and revision.spec.get("engine") in LLM_ENGINES
        for pod in [_loading_pod(observation.pods.get(revision.number, []))]
        if pod is not None
    }
    if not loading:
        return observation
    pods = dict(observation.pods)
    for number, pod in loading.items():
        explained = _with_message(deployment, pod)
        pods[number] = [explained if item is pod else item for item in pods[number]]
    return observation.with_pods(pods)


def _loading_pod(pods: list[Json]) -> Json | None:
    return next((pod for pod in pods if _running(pod) is not None), None)


def _running(pod: Json) -> Json | None:
    """Return the state of the pod's only container if it runs and is not ready."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    if len(statuses) != 1 or statuses[0].get("ready"):
        return None
    running: Json | None = (statuses[0].get("state") or {}).get("running")
    return running


def _with_message(deployment: Deployment, pod: Json) -> Json:
    explained = copy.deepcopy(pod)
    running = _running(explained)
    try:
        log = objects.pod_log(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            pod=pod["metadata"]["name"],
            tail_lines=_LINES,
        )
    except ClusterError as error:
        # That it loads is then all there is.
        logger.info("deployment=%s no log of the start: %s", deployment.pk, error.message)
        return pod
    if running is not None:
        running["message"] = language_start.describe(log)
    return explained
