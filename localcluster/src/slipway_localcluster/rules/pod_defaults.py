"""Fills in the API server's defaults of a pod, so that stating a default is no change."""

import copy

from slipway_localcluster.errors import JsonObject

_POD: JsonObject = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER: JsonObject = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE: JsonObject = {
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def complete_pod_spec(spec: JsonObject) -> JsonObject:
    """Return a copy with a server's defaults, which shares no list or map with others."""
    completed = {**copy.deepcopy(_POD), **copy.deepcopy(spec)}
    account = completed.get("serviceAccountName") or "default"
    completed["serviceAccountName"] = completed["serviceAccount"] = account
    for field in ("containers", "initContainers"):
        if completed.get(field):
            completed[field] = [_complete_container(item) for item in completed[field]]
    return completed


def _complete_container(container: JsonObject) -> JsonObject:
    completed = {**copy.deepcopy(_CONTAINER), **container}
    image = str(container.get("image", ""))
    is_latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    completed.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    for port in completed.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for name in _PROBES:
        if name in completed:
            completed[name] = _PROBE | completed[name]
    return completed
