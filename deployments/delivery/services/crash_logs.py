"""Add the cause of a crash that a pod's status leaves out: the end of its log, or a failed probe.

Kubernetes stores no message of a terminated container unless its manifest requests one, and never
reports in the status that a probe had it killed. Only pods that crash cost a request.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

from deployments.delivery.domain import diagnosis
from deployments.delivery.services.observe import DeploymentObservation
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects

logger = logging.getLogger(__name__)

_LINES = 60
# Killed from outside: by a probe, or by the node.
_KILLED = (137, 143)
Json = dict[str, Any]


def explain(deployment: Deployment, observation: DeploymentObservation) -> DeploymentObservation:
    """Fill in the missing termination message of at most one pod of each revision."""
    crashed = {
        number: pods
        for number, pods in observation.pods.items()
        if any(_unexplained_end(pod) is not None for pod in pods)
    }
    if not crashed:
        return observation
    explained = {number: _with_message(deployment, pods) for number, pods in crashed.items()}
    return observation.with_pods({**observation.pods, **explained})


def _with_message(deployment: Deployment, pods: list[Json]) -> list[Json]:
    crashed = next((pod for pod in pods if _unexplained_end(pod) is not None), None)
    if crashed is None:
        return pods
    explained = copy.deepcopy(crashed)
    end = _unexplained_end(explained)
    if end is not None:
        try:
            end["message"] = _crash_message(deployment, explained["metadata"]["name"], end)
        except ClusterError as error:
            # The status without a message is then all there is.
            logger.info("deployment=%s no crash log: %s", deployment.pk, error.message)
    return [explained if pod is crashed else pod for pod in pods]


def _unexplained_end(pod: Mapping[str, Any]) -> Json | None:
    """Return the termination of the pod's server if it failed without a message."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    for status in statuses:
        now = (status.get("state") or {}).get("terminated")
        last = (status.get("lastState") or {}).get("terminated")
        end: Json | None = now or last
        has_failed = (
            end is not None and end.get("exitCode", 0) != 0 and end.get("reason") != "OOMKilled"
        )
        if end is not None and has_failed and not end.get("message") and len(statuses) == 1:
            return end
    return None


def _crash_message(deployment: Deployment, pod: str, end: Mapping[str, Any]) -> str:
    if end.get("exitCode") in _KILLED:
        failed_probe = _last_failed_probe(deployment, pod)
        if failed_probe:
            return failed_probe
    log = objects.pod_log(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        pod=pod,
        tail_lines=_LINES,
    )
    return diagnosis.explaining_line(log)


def _last_failed_probe(deployment: Deployment, pod: str) -> str:
    """Return the message of the last event of a failed probe. Empty without any."""
    events = objects.list_objects(
        cluster_id=deployment.cluster_id,
        api_version="v1",
        kind="Event",
        namespace=deployment.namespace,
        labels={},
    )
    failed_probes = [
        event
        for event in events
        if event.get("reason") == "Unhealthy" and event.get("involvedObject", {}).get("name") == pod
    ]
    last = max(failed_probes, key=lambda event: event.get("lastTimestamp") or "", default=None)
    return str(last.get("message", "")) if last else ""
