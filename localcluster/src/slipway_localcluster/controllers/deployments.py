"""Deployments: one ReplicaSet per pod template, replaced step by step."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from slipway_localcluster.controllers import conditions, rolling
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    filter_owned,
    is_deleted,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import DEPLOYMENT, REPLICA_SET
from slipway_localcluster.objects import timestamp
from slipway_localcluster.store import Store

_HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_DEFAULT_DEADLINE_SECONDS = 600
_DEFAULT_HISTORY = 10


class Deployments:
    """Scales the newest template's ReplicaSet up and the others down."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, "deployment-controller")

    def reconcile(self) -> None:
        replica_sets = self._store.list(REPLICA_SET)
        living = [item for item in replica_sets if not is_deleted(item)]

        def reconcile_deployment(deployment: JsonObject) -> None:
            if not is_deleted(deployment):
                owned = filter_owned(deployment, living)
                self._reconcile_deployment(deployment, sorted(owned, key=_revision))

        reconcile_each(self._store.list(DEPLOYMENT), reconcile_deployment)

    def _reconcile_deployment(self, deployment: JsonObject, owned: list[JsonObject]) -> None:
        name = _set_name(deployment)
        new = next((item for item in owned if item["metadata"]["name"] == name), None)
        old = [item for item in owned if item is not new]
        revision = max((_revision(item) for item in old), default=0) + 1
        if new is None:
            new = self._store.create(REPLICA_SET, _replica_set(deployment, name, revision))
        elif _revision(new) < revision:
            new["metadata"].setdefault("annotations", {})[_REVISION] = str(revision)
            new = self._store.replace(REPLICA_SET, new)
        if not deployment["spec"].get("paused"):
            self._resize(deployment, new, old)
        self._trim_history(deployment, old)
        write_status(self._store, DEPLOYMENT, deployment, status_of(deployment, new, old))

    def _resize(self, deployment: JsonObject, new: JsonObject, old: list[JsonObject]) -> None:
        replicas = int(deployment["spec"].get("replicas", 1))
        strategy = rolling.strategy_of(deployment)
        sizes = rolling.next_sizes(replicas, strategy, _size(new), tuple(_size(x) for x in old))
        for replica_set in (new, *old):
            size = sizes[replica_set["metadata"]["name"]]
            before = int(replica_set["spec"].get("replicas", 0))
            if before == size:
                continue
            replica_set["spec"]["replicas"] = size
            replica_set["metadata"] = self._store.replace(REPLICA_SET, replica_set)["metadata"]
            direction = "up" if size > before else "down"
            message = f"Scaled {direction} replica set {replica_set['metadata']['name']}"
            self._events.normal(
                deployment, "ScalingReplicaSet", f"{message} from {before} to {size}"
            )

    def _trim_history(self, deployment: JsonObject, old: Sequence[JsonObject]) -> None:
        kept = int(deployment["spec"].get("revisionHistoryLimit", _DEFAULT_HISTORY))
        empty = [item for item in old if not item["spec"].get("replicas") and not _existing(item)]
        for item in empty[: max(len(empty) - kept, 0)]:
            metadata = item["metadata"]
            self._store.delete(REPLICA_SET, metadata["namespace"], metadata["name"])


def status_of(deployment: JsonObject, new: JsonObject, old: Sequence[JsonObject]) -> JsonObject:
    """Return the status as Kubernetes computes it, from the ReplicaSets' own."""
    replicas = int(deployment["spec"].get("replicas", 1))
    owned = [new, *old]
    available = sum(_size(item).available for item in owned)
    total = sum(_existing(item) for item in owned)
    updated = _existing(new)
    status: JsonObject = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": available,
        "availableReplicas": available,
        "unavailableReplicas": max(total, replicas) - available,
    }
    is_complete = updated == replicas == total == _size(new).available
    current = (deployment.get("status") or {}).get("conditions")
    status["conditions"] = [
        *conditions.merge(current, [_availability(deployment, available)]),
        _progress(deployment, new, status, is_complete=is_complete),
    ]
    return status


def _availability(deployment: JsonObject, available: int) -> JsonObject:
    replicas = int(deployment["spec"].get("replicas", 1))
    needed = replicas - rolling.strategy_of(deployment).max_unavailable
    if available >= needed:
        return conditions.condition(
            "Available",
            conditions.TRUE,
            reason="MinimumReplicasAvailable",
            message="Deployment has minimum availability.",
        )
    return conditions.condition(
        "Available",
        conditions.FALSE,
        reason="MinimumReplicasUnavailable",
        message="Deployment does not have minimum availability.",
    )


def _progress(
    deployment: JsonObject, new: JsonObject, status: JsonObject, *, is_complete: bool
) -> JsonObject:
    """`lastUpdateTime` is the last step forward; the deadline counts from there."""
    known = conditions.find(deployment, "Progressing")
    name = new["metadata"]["name"]
    if is_complete:
        reason, text = "NewReplicaSetAvailable", "has successfully progressed."
    elif _is_overdue(deployment, known, has_moved=_has_moved(deployment, status)):
        reason, text = "ProgressDeadlineExceeded", "has timed out progressing."
    else:
        reason, text = "ReplicaSetUpdated", "is progressing."
    state = conditions.FALSE if reason == "ProgressDeadlineExceeded" else conditions.TRUE
    message = f'ReplicaSet "{name}" {text}'
    current = conditions.condition("Progressing", state, reason=reason, message=message)
    merged = conditions.merge([known] if known else [], [current])[0]
    is_same = known is not None and (known.get("reason"), known.get("message")) == (reason, message)
    if known is not None and is_same and not _has_moved(deployment, status):
        return {**merged, "lastUpdateTime": known.get("lastUpdateTime", timestamp())}
    return {**merged, "lastUpdateTime": timestamp()}


def _has_moved(deployment: JsonObject, status: JsonObject) -> bool:
    before = deployment.get("status") or {}
    watched = ("updatedReplicas", "availableReplicas", "observedGeneration")
    return any(before.get(name) != status[name] for name in watched)


def _is_overdue(deployment: JsonObject, known: JsonObject | None, *, has_moved: bool) -> bool:
    if known is None or has_moved or known.get("reason") == "NewReplicaSetAvailable":
        return False
    if known.get("reason") == "ProgressDeadlineExceeded":
        return True
    limit = int(deployment["spec"].get("progressDeadlineSeconds", _DEFAULT_DEADLINE_SECONDS))
    since = datetime.fromisoformat(known.get("lastUpdateTime", timestamp()))
    return (datetime.now(UTC) - since).total_seconds() > limit


def _set_name(deployment: JsonObject) -> str:
    return f"{deployment['metadata']['name']}-{_template_hash(deployment)}"


def _template_hash(deployment: JsonObject) -> str:
    text = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _replica_set(deployment: JsonObject, name: str, revision: int) -> JsonObject:
    template = deployment["spec"]["template"]
    metadata = template.get("metadata") or {}
    label = {_HASH_LABEL: _template_hash(deployment)}
    labels = {**(metadata.get("labels") or {}), **label}
    selector = deployment["spec"].get("selector") or {}
    return {
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "annotations": {_REVISION: str(revision)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {**(selector.get("matchLabels") or {}), **label}},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


def _revision(replica_set: JsonObject) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION, 0))


def _existing(replica_set: JsonObject) -> int:
    return int((replica_set.get("status") or {}).get("replicas", 0))


def _size(replica_set: JsonObject) -> rolling.SetSize:
    return rolling.SetSize(
        name=replica_set["metadata"]["name"],
        desired=int(replica_set["spec"].get("replicas", 0)),
        existing=_existing(replica_set),
        available=int((replica_set.get("status") or {}).get("availableReplicas", 0)),
    )
