"""The eviction subresource of pods: a deletion that disruption budgets can refuse."""

from dataclasses import replace

from slipway_localcluster.controllers import conditions
from slipway_localcluster.errors import ApiError, Cause, Conflict, JsonObject, TooManyRequests
from slipway_localcluster.kinds import PDB, POD
from slipway_localcluster.objects import FINISHED_PHASES, timestamp
from slipway_localcluster.rules.workloads import is_selected
from slipway_localcluster.store import Store
from slipway_localcluster.writes import Target, WriteOptions, Writer

_WAIT_SECONDS = 10


def evict(store: Store, writer: Writer, target: Target, options: WriteOptions) -> JsonObject:
    """Delete the pod, or raise TooManyRequests. The server handles one request at a time, so that two
    evictions never count on the same allowance; the controller compares versions.
    """
    pod = store.get(POD, target.namespace, str(target.name))
    if options.uid not in (None, pod["metadata"]["uid"]):
        raise Conflict(f"the precondition's UID {options.uid} is not that of the pod")
    if not _is_exempt(pod):
        labels = pod["metadata"].get("labels") or {}
        budgets = [
            budget
            for budget in store.list(PDB, target.namespace)
            if is_selected(budget["spec"].get("selector"), labels)
        ]
        if len(budgets) > 1:
            raise ApiError(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
                "not support.",
            )
        for budget in budgets:
            _count(store, budget, pod, options)
    if not options.is_dry_run:
        _mark(store, target)
    writer.delete(replace(target, subresource=""), options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _mark(store: Store, target: Target) -> None:
    """Mark the pod, so that a Job does not count its end as a failure."""
    pod = store.get(POD, target.namespace, str(target.name))
    status = pod.get("status") or {}
    marked = conditions.condition(
        "DisruptionTarget",
        conditions.TRUE,
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    others = [item for item in status.get("conditions") or () if item["type"] != marked["type"]]
    timed = conditions.merge(None, [marked])
    store.replace_status(POD, {**pod, "status": {**status, "conditions": [*others, *timed]}})


def _is_exempt(pod: JsonObject) -> bool:
    """Return whether a pod serves nothing: it is finished, not started yet, or being deleted."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    is_ended = phase in FINISHED_PHASES or "deletionTimestamp" in pod["metadata"]
    return is_ended or phase == "Pending"


def _count(store: Store, budget: JsonObject, pod: JsonObject, options: WriteOptions) -> None:
    status, name = budget.get("status") or {}, budget["metadata"]["name"]
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if not conditions.is_true(pod, "Ready"):
        is_always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if is_always or healthy >= desired > 0:
            return
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        message = f"The disruption budget {name} is still being processed by the server."
        raise _refusal(message, retry_seconds=_WAIT_SECONDS)
    allowed = int(status.get("disruptionsAllowed", 0))
    if allowed <= 0:
        message = (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
        raise _refusal(message)
    if options.is_dry_run:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: timestamp()}
    counted = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    store.replace_status(PDB, {**budget, "status": counted})


def _refusal(message: str, *, retry_seconds: int = 0) -> TooManyRequests:
    return TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"retryAfterSeconds": retry_seconds} if retry_seconds else None,
        causes=[Cause("DisruptionBudget", message)],
    )
