"""Table cells that need more than one field."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from slipway_localcluster.errors import JsonObject

_NONE = "<none>"


def since(stamp: str | None) -> str:
    """Time since then in kubectl's format: `5s`, `3m20s`, `2h`, `4d`."""
    if not stamp:
        return "<unknown>"
    seconds = max(int((datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()), 0)
    return short_duration(timedelta(seconds=seconds))


def short_duration(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d"


def age(obj: JsonObject) -> str:
    return since(obj["metadata"].get("creationTimestamp"))


def last_seen(obj: JsonObject) -> str:
    stamp = obj.get("lastTimestamp") or obj.get("eventTime")
    return since(stamp or obj["metadata"].get("creationTimestamp"))


def event_object(obj: JsonObject) -> str:
    involved = obj.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def label(name: str) -> Callable[[JsonObject], str]:
    return lambda obj: (obj["metadata"].get("labels") or {}).get(name, _NONE)


def count(field: str) -> Callable[[JsonObject], int]:
    return lambda obj: len(obj.get(field) or ())


def condition(kind: str) -> Callable[[JsonObject], str]:
    return lambda obj: _conditions(obj).get(kind, {}).get("status", "")


def _conditions(obj: JsonObject) -> dict[str, JsonObject]:
    listed = (obj.get("status") or {}).get("conditions") or []
    return {item.get("type", ""): item for item in listed}


def _container_statuses(obj: JsonObject, field: str = "containerStatuses") -> list[JsonObject]:
    return (obj.get("status") or {}).get(field) or []


def pod_ready(obj: JsonObject) -> str:
    ready = sum(1 for item in _container_statuses(obj) if item.get("ready"))
    return f"{ready}/{len((obj.get('spec') or {}).get('containers') or ())}"


def pod_restarts(obj: JsonObject) -> int:
    return sum(int(item.get("restartCount", 0)) for item in _container_statuses(obj))


def pod_status(obj: JsonObject) -> str:
    """Return the phase, or the reason of a container's state: CrashLoopBackOff, Init:Error, …"""
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    status = obj.get("status") or {}
    init = _init_status(obj)
    if init:
        return init
    for item in _container_statuses(obj):
        reason = _state_reason(item)
        if reason:
            return reason
    return str(status.get("reason") or status.get("phase") or "Pending")


def _init_status(obj: JsonObject) -> str:
    statuses = _container_statuses(obj, "initContainerStatuses")
    for position, item in enumerate(statuses):
        state = item.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0:
            continue
        reason = _state_reason(item)
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{position}/{len(statuses)}"
    return ""


def _state_reason(status: JsonObject) -> str:
    state = status.get("state") or {}
    stopped = state.get("waiting") or state.get("terminated") or {}
    return str(stopped.get("reason", ""))


def node_status(obj: JsonObject) -> str:
    is_ready = _conditions(obj).get("Ready", {}).get("status") == "True"
    cordoned = (obj.get("spec") or {}).get("unschedulable")
    return ("Ready" if is_ready else "NotReady") + (",SchedulingDisabled" if cordoned else "")


def deployment_ready(obj: JsonObject) -> str:
    desired = (obj.get("spec") or {}).get("replicas", 1)
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{desired}"


def service_ports(obj: JsonObject) -> str:
    ports = (obj.get("spec") or {}).get("ports") or []
    return _joined(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports)


def selector(obj: JsonObject) -> str:
    selected: Mapping[str, Any] = (obj.get("spec") or {}).get("selector") or {}
    labels = selected.get("matchLabels", selected)
    return _joined(f"{name}={value}" for name, value in labels.items())


def template_values(field: str) -> Callable[[JsonObject], str]:
    def read(obj: JsonObject) -> str:
        template = (obj.get("spec") or {}).get("template") or {}
        containers = (template.get("spec") or {}).get("containers") or []
        return _joined(str(item.get(field, "")) for item in containers)

    return read


def scale_target(obj: JsonObject) -> str:
    target = (obj.get("spec") or {}).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def traffic(which: str, field: str) -> Callable[[JsonObject], Any]:
    def read(obj: JsonObject) -> Any:
        components = (obj.get("status") or {}).get("components") or {}
        for item in (components.get("predictor") or {}).get("traffic") or []:
            is_match = item.get("latestRevision") if which == "latest" else item.get("tag") == which
            if is_match:
                return item.get(field)
        return None

    return read


def hostnames(obj: JsonObject) -> str:
    return _joined((obj.get("spec") or {}).get("hostnames") or ())


def backends(obj: JsonObject) -> str:
    return _joined(
        f"{backend.get('name')}={backend.get('weight', 1)}"
        for rule in (obj.get("spec") or {}).get("rules") or []
        for backend in rule.get("backendRefs") or []
    )


def first_address(obj: JsonObject) -> str:
    addresses = (obj.get("status") or {}).get("addresses") or [{}]
    return str(addresses[0].get("value", ""))


def first_format(obj: JsonObject) -> str:
    formats = (obj.get("spec") or {}).get("supportedModelFormats") or [{}]
    return str(formats[0].get("name", ""))


def first_container(obj: JsonObject) -> str:
    containers = (obj.get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("name", ""))


def _joined(parts: Iterable[str]) -> str:
    return ",".join(parts) or _NONE
