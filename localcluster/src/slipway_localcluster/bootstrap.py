"""Objects that exist from the first start: system namespaces with a ServiceAccount in each, and KServe's settings."""

import json
import uuid

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from slipway_localcluster.store import Store

_NAMESPACES = ("default", "kube-system", "kube-node-lease", "slipway-gateway", "kserve")
KSERVE_SETTINGS = ("kserve", "inferenceservice-config")
_ROUTER = {"headers": {"propagate": ["X-Api-Key"]}}
_JOB_PREFIXES = ("batch.kubernetes.io/", "")
_NAME_LABEL = "kubernetes.io/metadata.name"


def seed(store: Store) -> None:
    for name in _NAMESPACES:
        if store.find(NAMESPACE, None, name) is None:
            namespace: JsonObject = {"metadata": {"name": name}}
            complete_namespace(namespace)
            store.create(NAMESPACE, namespace)
        create_service_account(store, name)
    where = dict(zip(("namespace", "name"), KSERVE_SETTINGS, strict=True))
    if store.find(CONFIG_MAP, *KSERVE_SETTINGS) is None:
        store.create(CONFIG_MAP, {"metadata": where, "data": {"router": json.dumps(_ROUTER)}})


def complete_namespace(namespace: JsonObject) -> None:
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    metadata["labels"] = labels | {_NAME_LABEL: metadata.get("name", "")}
    namespace["status"] = {"phase": "Active"}


def complete_job(job: JsonObject) -> None:
    """A Job selects its pods by its own uid, unless it states its selector."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector") or "template" not in spec:
        return
    metadata = job["metadata"]
    metadata["uid"] = uid = str(uuid.uuid4())
    own = {f"{prefix}controller-uid": uid for prefix in _JOB_PREFIXES}
    own |= {f"{prefix}job-name": metadata["name"] for prefix in _JOB_PREFIXES}
    template = spec["template"]
    in_template = template.get("metadata") or {}
    labels = {**(in_template.get("labels") or {}), **own}
    job["spec"] = {
        **spec,
        "selector": {"matchLabels": {f"{_JOB_PREFIXES[0]}controller-uid": uid}},
        "template": {**template, "metadata": {**in_template, "labels": labels}},
    }


def create_service_account(store: Store, namespace: str) -> None:
    if store.find(SERVICE_ACCOUNT, namespace, "default") is None:
        metadata = {"name": "default", "namespace": namespace}
        store.create(SERVICE_ACCOUNT, {"metadata": metadata})
