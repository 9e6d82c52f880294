"""Objects that exist from the first start: system namespaces, and a ServiceAccount in each."""

from fleet.localcluster.errors import JsonObject
from fleet.localcluster.kinds import NAMESPACE, SERVICE_ACCOUNT
from fleet.localcluster.store import Store

_NAMESPACES = ("default", "kube-system", "kube-node-lease", "slipway-gateway")
_NAME_LABEL = "kubernetes.io/metadata.name"


def seed(store: Store) -> None:
    for name in _NAMESPACES:
        if store.find(NAMESPACE, None, name) is None:
            namespace: JsonObject = {"metadata": {"name": name}}
            complete_namespace(namespace)
            store.create(NAMESPACE, namespace)
        create_service_account(store, name)


def complete_namespace(namespace: JsonObject) -> None:
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    metadata["labels"] = labels | {_NAME_LABEL: metadata.get("name", "")}
    namespace["status"] = {"phase": "Active"}


def create_service_account(store: Store, namespace: str) -> None:
    if store.find(SERVICE_ACCOUNT, namespace, "default") is None:
        metadata = {"name": "default", "namespace": namespace}
        store.create(SERVICE_ACCOUNT, {"metadata": metadata})
