"""The state of one container, and a pod's status computed from its containers: pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slipway_localcluster.controllers import conditions
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.objects import timestamp

_FIRST_BACKOFF_SECONDS = 10
_LONGEST_BACKOFF_SECONDS = 300
MESSAGE_LIMIT = 2048
# A pod may have more, written by other controllers.
_OWN_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


@dataclass(slots=True)
class ContainerState:
    """The status of one container as Kubernetes shows it."""

    name: str
    image: str
    is_ready: bool = False
    restarts: int = 0
    state: JsonObject = field(default_factory=dict)
    last_state: JsonObject = field(default_factory=dict)

    def wait(self, reason: str, message: str = "") -> None:
        details = {"reason": reason, "message": message} if message else {"reason": reason}
        self._change("waiting", details)

    def run(self) -> None:
        self._change("running", {"startedAt": timestamp()})

    def end(self, exit_code: int, message: str = "", *, reason: str = "") -> None:
        """Record the end; without a `reason` it follows from the exit code."""
        started = (self.state.get("running") or {}).get("startedAt", timestamp())
        ended = {
            "exitCode": exit_code,
            "reason": reason or ("Error" if exit_code else "Completed"),
            "startedAt": started,
            "finishedAt": timestamp(),
        }
        if message:
            ended["message"] = message[-MESSAGE_LIMIT:] if exit_code else message
        self.is_ready = False
        self._change("terminated", ended)

    def _change(self, kind: str, details: JsonObject) -> None:
        if kind in self.state and kind != "waiting":
            return
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {kind: details}

    def as_json(self) -> JsonObject:
        status: JsonObject = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.is_ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
            "state": self.state,
        }
        if self.last_state:
            status["lastState"] = self.last_state
        return status


def backoff_seconds(restarts: int) -> int:
    """Return the delay before the next start: none after the first end, then 10, 20, ... 300 seconds."""
    if restarts < 1:
        return 0
    # Bounded, because months of restarts would make the power huge.
    return int(min(_FIRST_BACKOFF_SECONDS * 2 ** min(restarts - 1, 8), _LONGEST_BACKOFF_SECONDS))


def pod_status(
    pod: JsonObject,
    initializers: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    *,
    is_initialized: bool,
    address: str,
) -> JsonObject:
    """Return the pod's status, with its phase and conditions."""
    before = pod.get("status") or {}
    has_started = any(item.state.get("running") or item.last_state for item in containers)
    is_ready = bool(containers) and all(item.is_ready for item in containers)
    unready = [item.name for item in containers if not item.is_ready]
    unready_reason = {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }
    desired = [
        conditions.condition("PodScheduled", conditions.TRUE),
        _condition("Initialized", {"reason": "ContainersNotInitialized"}, is_true=is_initialized),
        _condition("ContainersReady", unready_reason, is_true=is_ready),
        _condition("Ready", unready_reason, is_true=is_ready),
    ]
    others = [
        item for item in before.get("conditions") or () if item["type"] not in _OWN_CONDITIONS
    ]
    status: JsonObject = {
        "phase": _final_phase(pod, [*initializers, *containers])
        or ("Running" if is_initialized and has_started else "Pending"),
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": before.get("qosClass") or _quality_of_service(pod),
        "startTime": before.get("startTime") or timestamp(),
        "conditions": [*conditions.merge(before.get("conditions"), desired), *others],
        "containerStatuses": [item.as_json() for item in containers],
    }
    if initializers:
        status["initContainerStatuses"] = [item.as_json() for item in initializers]
    return status


def _final_phase(pod: JsonObject, states: Sequence[ContainerState]) -> str:
    """Return the final phase of a pod whose containers run once. Empty while it is not over."""
    if (pod.get("spec") or {}).get("restartPolicy") != "Never":
        return ""
    codes = [(item.state.get("terminated") or {}).get("exitCode") for item in states]
    if any(codes):
        return "Failed"
    return "Succeeded" if all(code == 0 for code in codes) else ""


def _condition(kind: str, otherwise: Mapping[str, str], *, is_true: bool) -> JsonObject:
    if is_true:
        return conditions.condition(kind, conditions.TRUE)
    return conditions.condition(kind, conditions.FALSE, **otherwise)


def _quality_of_service(pod: JsonObject) -> str:
    resources = [item.get("resources") or {} for item in pod["spec"]["containers"]]
    is_guaranteed = all(
        item.get("limits") and item.get("limits") == item.get("requests") for item in resources
    )
    return "Guaranteed" if is_guaranteed else "Burstable"
