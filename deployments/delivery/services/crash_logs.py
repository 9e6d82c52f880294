"""Reads what a pod's status leaves out: the log of a crash, and the event that says who killed it.

Kubernetes keeps no words of a container that ended unless its manifest asks for them, and never says
in the status that a probe had it killed. Read once per crash, and only of pods that crash.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

from deployments.delivery.domain import diagnosis
from deployments.delivery.services.observe import Observation
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects

logger = logging.getLogger(__name__)

_LINES = 60
# Killed from outside: by a probe, or by the node.
_KILLED = (137, 143)
Json = dict[str, Any]


def explain(deployment: Deployment, observation: Observation) -> Observation:
    """The same, with words where a container ended without any. At most one pod of each revision."""
    pods = {
        number: _with_words(deployment, of_revision)
        for number, of_revision in observation.pods.items()
    }
    return observation.with_pods(pods)


def _with_words(deployment: Deployment, pods: list[Json]) -> list[Json]:
    found = next((pod for pod in pods if _silent_end(pod) is not None), None)
    if found is None:
        return pods
    told = copy.deepcopy(found)
    end = _silent_end(told)
    if end is not None:
        try:
            end["message"] = _words_of(deployment, told["metadata"]["name"], end)
        except ClusterError as error:
            # What the status says is then all that is told.
            logger.info("deployment=%s no crash log: %s", deployment.pk, error.message)
    return [told if pod is found else pod for pod in pods]


def _silent_end(pod: Mapping[str, Any]) -> Json | None:
    """How its server ended, where it ended badly and nothing says why."""
    statuses = pod.get("status", {}).get("containerStatuses") or []
    for status in statuses:
        ended = (status.get("state") or {}).get("terminated")
        last = (status.get("lastState") or {}).get("terminated")
        end: Json | None = ended or last
        is_bad = (
            end is not None and end.get("exitCode", 0) != 0 and end.get("reason") != "OOMKilled"
        )
        if end is not None and is_bad and not end.get("message") and len(statuses) == 1:
            return end
    return None


def _words_of(deployment: Deployment, pod: str, end: Mapping[str, Any]) -> str:
    if end.get("exitCode") in _KILLED:
        killed = _unhealthy(deployment, pod)
        if killed:
            return killed
    log = objects.pod_log(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        pod=pod,
        tail_lines=_LINES,
    )
    return diagnosis.telling_of(log)


def _unhealthy(deployment: Deployment, pod: str) -> str:
    """The last event of a probe that failed; empty without any."""
    events = objects.list_objects(
        cluster_id=deployment.cluster_id,
        api_version="v1",
        kind="Event",
        namespace=deployment.namespace,
        labels={},
    )
    mine = [
        event
        for event in events
        if event.get("reason") == "Unhealthy" and event.get("involvedObject", {}).get("name") == pod
    ]
    last = max(mine, key=lambda event: event.get("lastTimestamp") or "", default=None)
    return str(last.get("message", "")) if last else ""
