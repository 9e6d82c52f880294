"""Read the logs and the Kubernetes events of a deployment's pods for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deployments.delivery.domain import log_lines, pod_events
from deployments.delivery.domain.log_lines import LogLine
from deployments.delivery.domain.pod_events import PodEvent
from deployments.delivery.services import live_objects
from deployments.serving.selectors import deployments
from fleet.kube.domain.errors import ClusterError, ObjectInvalid, ObjectNotFound
from fleet.kube.services import objects
from fleet.kube.services.objects import PodLogTail
from fleet.observation.selectors.pods import PodInfo
from portal.accounts.policy import Actor
from portal.core.errors import NotFound

# Logs of so many pods are read for one page, of the newest revisions first.
MOST_PODS: Final = 8
# For each pod. A page shows some thousand lines; a line may be of any length.
_MOST_BYTES: Final = 1024**2


@dataclass(frozen=True, slots=True)
class PodLogs:
    """The last lines of the pods in `names`, merged by time. `pods` are all pods of the deployment; `problems` say
    what could not be read, and why.
    """

    pods: Sequence[PodInfo]
    names: Sequence[str] = ()
    lines: Sequence[LogLine] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PodEvents:
    """The events of pods, newest first. `problem` says why they are not known, empty if they are."""

    events: Sequence[PodEvent]
    problem: str = ""


def read_logs(
    *, actor: Actor, deployment_id: int, pod: str, lines: int, is_previous: bool
) -> PodLogs:
    """Read the last lines of a pod, or of all pods without a name. `is_previous` reads the run before the last restart
    of each container. Raises NotFound for a pod of another deployment.
    """
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    pods = live_objects.pods_of(deployment)
    if pod and pod not in {info.name for info in pods}:
        raise NotFound(f"{deployment} has no pod {pod}.")
    # None of the others has ended and begun again.
    readable = [info.name for info in pods if info.restart_count or not is_previous]
    names = [pod] if pod else readable[:MOST_PODS]
    texts = (
        objects.pod_logs(
            cluster_id=deployment.cluster_id,
            namespace=deployment.namespace,
            pods=names,
            tail_lines=lines,
            limit_bytes=_MOST_BYTES,
            is_previous=is_previous,
        )
        if names
        else {}
    )
    read = {name: log for name, log in texts.items() if isinstance(log, PodLogTail)}
    merged = log_lines.merge_logs(log_lines.parse_log(name, log.text) for name, log in read.items())
    problems = [*_describe_errors(texts, is_previous=is_previous), *_describe_cuts(read)]
    if not pod and len(readable) > MOST_PODS:
        problems.append(
            f"Shown are {MOST_PODS} of {len(readable)} pods. Choose a pod to see others."
        )
    return PodLogs(pods, names, merged, problems)


def list_events(*, actor: Actor, deployment_id: int, pods: Iterable[PodInfo]) -> PodEvents:
    """List the events of the deployment's pods, as the cluster keeps them."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    names = {info.name for info in pods}
    if not names:
        return PodEvents([])
    try:
        items = objects.list_pod_events(
            cluster_id=deployment.cluster_id, namespace=deployment.namespace
        )
    except ClusterError as error:
        return PodEvents([], f"The cluster did not return the events: {error.message}")
    return PodEvents(pod_events.list_events(items, names))


def _describe_errors(
    texts: Mapping[str, PodLogTail | ClusterError], *, is_previous: bool
) -> list[str]:
    """Describe each reason once, with its pods."""
    by_reason: dict[str, list[str]] = {}
    for name, error in texts.items():
        if isinstance(error, ClusterError):
            reason = _describe_error(error, is_previous=is_previous)
            by_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _describe_error(error: ClusterError, *, is_previous: bool) -> str:
    if is_previous and isinstance(error, ObjectInvalid | ObjectNotFound):
        return "The container has no previous run."
    if isinstance(error, ObjectNotFound):
        return "The pod is gone. Choose another pod."
    return f"The cluster did not return the log: {error.message}"


def _describe_cuts(logs: Mapping[str, PodLogTail]) -> list[str]:
    names = ", ".join(name for name, log in logs.items() if log.is_short)
    return [f"{names}: only the newest lines, 1 MiB of them, are shown."] if names else []
