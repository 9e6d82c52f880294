"""ReplicaSets: keep the requested number of pods."""

import secrets

from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    filter_owned,
    is_deleted,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.scheduler import is_active
from slipway_localcluster.errors import ApiError, JsonObject, NotFound
from slipway_localcluster.kinds import POD, REPLICA_SET
from slipway_localcluster.store import Store

_NAME_LENGTH = 5
# Without vowels and similar characters, as in Kubernetes.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class ReplicaSets:
    """Creates missing pods, deletes surplus ones, the least useful first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, "replicaset-controller")

    def reconcile(self) -> None:
        pods = self._store.list(POD)

        def reconcile_replica_set(replica_set: JsonObject) -> None:
            if not is_deleted(replica_set):
                self._reconcile_replica_set(replica_set, filter_owned(replica_set, pods))

        reconcile_each(self._store.list(REPLICA_SET), reconcile_replica_set)

    def _reconcile_replica_set(self, replica_set: JsonObject, pods: list[JsonObject]) -> None:
        active = [pod for pod in pods if is_active(pod)]
        desired = int(replica_set["spec"].get("replicas", 1))
        for _ in range(desired - len(active)):
            self._create(replica_set)
        for pod in sorted(active, key=_usefulness)[: max(len(active) - desired, 0)]:
            self._delete(replica_set, pod)
        ready = sum(conditions.is_true(pod, "Ready") for pod in active)
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        write_status(self._store, REPLICA_SET, replica_set, status)

    def _create(self, replica_set: JsonObject) -> None:
        template = replica_set["spec"]["template"]
        owner = replica_set["metadata"]
        suffix = "".join(secrets.choice(_ALPHABET) for _ in range(_NAME_LENGTH))
        metadata = {
            "name": f"{owner['name']}-{suffix}",
            "generateName": f"{owner['name']}-",
            "namespace": owner["namespace"],
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "annotations": (template.get("metadata") or {}).get("annotations") or {},
            "ownerReferences": [controller_reference(replica_set)],
        }
        pod = {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
        try:
            created = self._store.create(POD, pod)
        except ApiError as error:
            message = f"Error creating: {error.message}"
            self._events.warning(replica_set, "FailedCreate", message)
            return
        message = f"Created pod: {created['metadata']['name']}"
        self._events.normal(replica_set, "SuccessfulCreate", message)

    def _delete(self, replica_set: JsonObject, pod: JsonObject) -> None:
        metadata = pod["metadata"]
        try:
            self._store.delete(POD, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except NotFound:
            return
        self._events.normal(replica_set, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")


def _usefulness(pod: JsonObject) -> tuple[bool, bool, str]:
    """Return the sort key of a pod: unbound before bound, not ready before ready, then by name."""
    is_bound = bool(pod["spec"].get("nodeName"))
    return is_bound, conditions.is_true(pod, "Ready"), pod["metadata"]["name"]
