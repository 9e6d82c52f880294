"""InferenceGraphs in Standard mode: a Deployment and a Service of the graph's own name.

Left out: Knative mode, `serviceName`, autoscaling (the router runs `minReplicas` times), affinity.
"""

import json

from slipway_localcluster import gjson
from slipway_localcluster.bootstrap import KSERVE_SETTINGS
from slipway_localcluster.controllers import conditions, graph_container
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.controllers.ownership import (
    controller_reference,
    is_deleted,
    owner_uids,
    write_status,
)
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.graph_router import READY_PATH
from slipway_localcluster.kinds import CONFIG_MAP, DEPLOYMENT, INFERENCE_GRAPH, SERVICE, Kind
from slipway_localcluster.store import Store

_RESOURCES = {"cpu": "100m", "memory": "100Mi"}


class NotServable(Exception):
    """The graph uses a feature that the local cluster's router does not support."""


class InferenceGraphs:
    """Maintains the router of each InferenceGraph, and its status."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, "InferenceGraphController")

    def reconcile(self) -> None:
        graphs = self._store.list(INFERENCE_GRAPH)
        reconcile_each((item for item in graphs if not is_deleted(item)), self._reconcile_graph)

    def _reconcile_graph(self, graph: JsonObject) -> None:
        before = (graph.get("status") or {}).get("conditions")
        try:
            _check(graph)
            desired = _deployment(graph, self._propagated_headers())
            deployment = self._ensure(DEPLOYMENT, graph, desired)
            self._ensure(SERVICE, graph, _service(graph))
        except NotServable as error:
            not_ready = conditions.condition(
                "Ready", conditions.FALSE, reason="InvalidGraph", message=str(error)
            )
            if conditions.find(graph, "Ready") is None:
                self._events.warning(graph, "InvalidGraph", str(error))
            self._write_status(graph, {"conditions": conditions.merge(before, [not_ready])})
            return
        # As in KServe, any status of the condition is enough.
        if conditions.find(deployment, "Available") is None:
            self._write_status(graph, {"conditions": before or []})
            return
        ready = conditions.condition("Ready", conditions.TRUE)
        metadata = graph["metadata"]
        url = f"http://{metadata['name']}-{metadata['namespace']}.example.com"
        self._write_status(graph, {"conditions": conditions.merge(before, [ready]), "url": url})

    def _propagated_headers(self) -> list[str]:
        """Return patterns of the header names that every router passes on, as KServe's settings state them."""
        settings = self._store.find(CONFIG_MAP, *KSERVE_SETTINGS)
        try:
            router = json.loads(((settings or {}).get("data") or {}).get("router", "{}"))
            return [str(item) for item in (router.get("headers") or {}).get("propagate") or ()]
        except (ValueError, AttributeError):
            return []

    def _write_status(self, graph: JsonObject, status: JsonObject) -> None:
        generation = graph["metadata"]["generation"]
        status = {"deploymentMode": "Standard", "observedGeneration": generation} | status
        write_status(self._store, INFERENCE_GRAPH, graph, status)

    def _ensure(self, kind: Kind, graph: JsonObject, desired: JsonObject) -> JsonObject:
        metadata = desired["metadata"]
        current = self._store.find(kind, metadata["namespace"], metadata["name"])
        if current is None:
            return self._store.create(kind, desired)
        if graph["metadata"]["uid"] not in owner_uids(current):
            raise NotServable(
                f"{kind.kind} {metadata['name']!r} exists and does not belong to this graph."
            )
        current["spec"] = desired["spec"]
        return self._store.replace(kind, current)


def _check(graph: JsonObject) -> None:
    nodes = graph["spec"]["nodes"]
    if "root" not in nodes:
        raise NotServable("InferenceGraph needs a node with name 'root' as the root node.")
    for node in nodes.values():
        for step in node.get("steps") or ():
            _check_step(step, nodes)


def _check_step(step: JsonObject, nodes: JsonObject) -> None:
    if step.get("nodeName"):
        if step["nodeName"] not in nodes:
            raise NotServable(f"There is no node {step['nodeName']!r}.")
    elif not step.get("serviceUrl"):
        raise NotServable("The local cluster's router calls a serviceUrl or a nodeName only.")
    if step.get("data", "$request") != "$request":
        raise NotServable("The local cluster's router sends only the request to every step.")
    try:
        gjson.parse(step.get("condition") or "@this")
    except gjson.UnsupportedPath as error:
        raise NotServable(str(error)) from error


def _metadata(graph: JsonObject) -> JsonObject:
    own = graph["metadata"]
    return {
        "name": own["name"],
        "namespace": own["namespace"],
        "labels": {
            **(own.get("labels") or {}),
            "app": f"isvc.{own['name']}",
            "serving.kserve.io/inferencegraph": own["name"],
        },
        "ownerReferences": [controller_reference(graph)],
    }


def _deployment(graph: JsonObject, propagated: list[str]) -> JsonObject:
    metadata = _metadata(graph)
    spec = graph["spec"]
    port = graph_container.PORT
    container = {
        "name": metadata["name"],
        "image": graph_container.IMAGE,
        "args": ["--graph-json", json.dumps(spec, sort_keys=True)],
        "resources": spec.get("resources") or {"requests": _RESOURCES, "limits": _RESOURCES},
        "readinessProbe": {"httpGet": {"path": READY_PATH, "port": port}},
    }
    if propagated:
        container["env"] = [
            {"name": graph_container.PROPAGATE_HEADERS, "value": ",".join(propagated)}
        ]
    return {
        "metadata": metadata,
        "spec": {
            "replicas": int(spec.get("minReplicas") or 1),
            "selector": {"matchLabels": {"app": metadata["labels"]["app"]}},
            "template": {
                "metadata": {"labels": metadata["labels"]},
                # All nodes here have GPUs; in other clusters the router does not tolerate their taint.
                "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
            },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
        },
    }


def _service(graph: JsonObject) -> JsonObject:
    metadata = _metadata(graph)
    port = {
        "name": metadata["name"],
        "port": 80,
        "targetPort": graph_container.PORT,
        "protocol": "TCP",
    }
    return {
        "metadata": metadata,
        "spec": {
            "selector": {"app": metadata["labels"]["app"]},
            "ports": [port],
            "type": "ClusterIP",
        },
    }
