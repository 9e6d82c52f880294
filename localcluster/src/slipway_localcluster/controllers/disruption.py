"""PodDisruptionBudgets: how many pods of each may be evicted now."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Any

from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.ownership import is_deleted, owner_uids
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.scheduler import is_active
from slipway_localcluster.errors import Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import DEPLOYMENT, PDB, POD, REPLICA_SET
from slipway_localcluster.rules.workloads import is_selected
from slipway_localcluster.store import Store


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the pods that a disruption budget covers. `expected` is what the owners of the pods request;
    `pods` is how many exist.
    """

    expected: int
    pods: int
    healthy: int


class DisruptionBudgets:
    def __init__(self, store: Store) -> None:
        self._store = store

    def reconcile(self) -> None:
        budgets = self._store.list(PDB)
        if not budgets:
            return
        pods = [pod for pod in self._store.list(POD) if is_active(pod)]
        requested = self._requested_replicas()
        reconcile_each(budgets, lambda budget: self._reconcile_budget(budget, pods, requested))

    def _requested_replicas(self) -> dict[str, tuple[str, int]]:
        """Return the UID of each ReplicaSet's top owner, and the replicas that this owner requests, by the
        ReplicaSet's UID.
        """
        deployments = {
            item["metadata"]["uid"]: int(item["spec"].get("replicas", 1))
            for item in self._store.list(DEPLOYMENT)
        }
        requested = {}
        for item in self._store.list(REPLICA_SET):
            uid = item["metadata"]["uid"]
            top = next((owner for owner in owner_uids(item) if owner in deployments), uid)
            own = int(item["spec"].get("replicas", 1))
            requested[uid] = (top, deployments.get(top, own))
        return requested

    def _reconcile_budget(
        self,
        budget: JsonObject,
        pods: Sequence[JsonObject],
        requested: Mapping[str, tuple[str, int]],
    ) -> None:
        if is_deleted(budget):
            return
        selected = pods_of(budget, pods)
        names = {pod["metadata"]["name"] for pod in selected}
        # Evicted pods count as gone from the eviction on, not from their end.
        disrupted = {
            name: at
            for name, at in ((budget.get("status") or {}).get("disruptedPods") or {}).items()
            if name in names
        }
        healthy = sum(
            conditions.is_true(pod, "Ready")
            for pod in selected
            if pod["metadata"]["name"] not in disrupted
        )
        owners = dict(
            requested[uid] for pod in selected for uid in owner_uids(pod) if uid in requested
        )
        health = Health(sum(owners.values()), len(selected), healthy)
        status = status_of(budget, health, disrupted)
        if status != budget.get("status"):
            # With its version: an eviction may have counted in the meantime.
            with suppress(Conflict, NotFound):
                self._store.replace_status(PDB, {**budget, "status": status})


def pods_of(budget: JsonObject, pods: Sequence[JsonObject]) -> list[JsonObject]:
    selector = (budget.get("spec") or {}).get("selector")
    namespace = budget["metadata"]["namespace"]
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == namespace
        and is_selected(selector, pod["metadata"].get("labels") or {})
    ]


def status_of(budget: JsonObject, health: Health, disrupted: Mapping[str, str]) -> JsonObject:
    expected, desired = _expected_and_desired(budget.get("spec") or {}, health)
    allowed = max(0, health.healthy - desired) if expected else 0
    return {
        "observedGeneration": budget["metadata"]["generation"],
        "expectedPods": expected,
        "desiredHealthy": desired,
        "currentHealthy": health.healthy,
        "disruptionsAllowed": allowed,
        **({"disruptedPods": dict(disrupted)} if disrupted else {}),
    }


def _expected_and_desired(spec: JsonObject, health: Health) -> tuple[int, int]:
    """A whole minAvailable counts the pods that exist; all else, what their owners request."""
    at_most, at_least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if at_most is not None:
        return health.expected, max(0, health.expected - _amount(at_most, health.expected))
    if isinstance(at_least, str):
        return health.expected, _amount(at_least, health.expected)
    return health.pods, int(at_least or 0)


def _amount(value: Any, whole: int) -> int:
    """A percentage is rounded up in both fields."""
    text = str(value)
    return ceil(whole * int(text[:-1]) / 100) if text.endswith("%") else int(text)
