"""Kubernetes Events: equal events of one object are counted, not repeated."""

import hashlib

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.errors import AlreadyExists, ApiError, JsonObject
from slipway_localcluster.kinds import EVENT
from slipway_localcluster.objects import timestamp


def record(
    api: ClusterApi,
    subject: JsonObject,
    reason: str,
    message: str,
    *,
    component: str,
    is_warning: bool = False,
) -> None:
    """Write an event about `subject`, or increase the count of an equal one."""
    metadata = subject["metadata"]
    namespace = metadata.get("namespace") or "default"
    digest = hashlib.sha256(f"{metadata['uid']} {reason} {message}".encode()).hexdigest()[:16]
    name = f"{metadata['name']}.{digest}"
    now = timestamp()
    event = {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": subject["apiVersion"],
            "kind": subject["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion"),
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if is_warning else "Normal",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
    }
    try:
        api.create(EVENT, event)
    except AlreadyExists:
        equal = api.find(EVENT, namespace, name)
        if equal is not None:
            api.replace(EVENT, equal | {"count": equal.get("count", 1) + 1, "lastTimestamp": now})


class Recorder:
    """Records for one component; a lost event never stops a controller."""

    def __init__(self, api: ClusterApi, component: str) -> None:
        self._api = api
        self._component = component

    def normal(self, subject: JsonObject, reason: str, message: str) -> None:
        self._record(subject, reason, message, is_warning=False)

    def warning(self, subject: JsonObject, reason: str, message: str) -> None:
        self._record(subject, reason, message, is_warning=True)

    def _record(self, subject: JsonObject, reason: str, message: str, *, is_warning: bool) -> None:
        try:
            record(
                self._api,
                subject,
                reason,
                message,
                component=self._component,
                is_warning=is_warning,
            )
        except ApiError:
            # The namespace or the subject is being deleted, and its events with it.
            return
