"""Responses to `kubectl get`: the Table format, with columns per kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway_localcluster import table_cells as cells
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import (
    CLAIM,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    EVENT,
    GATEWAY,
    GATEWAY_CLASS,
    HPA,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    LEASE,
    NAMESPACE,
    NODE,
    PDB,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    SERVING_RUNTIME,
    Kind,
)

Cell = Callable[[JsonObject], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `is_wide` ones show with `-o wide` only."""

    name: str
    cell: Cell
    type: str = "string"
    is_wide: bool = False


def _path(*names: str, default: Any = "<none>") -> Cell:
    def read(obj: JsonObject) -> Any:
        value: Any = obj
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return default if value is None else value

    return read


_NAME = Column("Name", _path("metadata", "name"))
_AGE = Column("Age", cells.age)
_HOSTNAMES = Column("Hostnames", cells.hostnames)

_COLUMNS: Mapping[Kind, Sequence[Column]] = {
    POD: (
        Column("Ready", cells.pod_ready),
        Column("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts, "integer"),
        _AGE,
        Column("IP", _path("status", "podIP"), is_wide=True),
        Column("Node", _path("spec", "nodeName"), is_wide=True),
    ),
    NODE: (
        Column("Status", cells.node_status),
        Column("Roles", lambda _: "<none>"),
        _AGE,
        Column("Version", _path("status", "nodeInfo", "kubeletVersion")),
        Column("GPUs", _path("status", "allocatable", "nvidia.com/gpu", default="0")),
        Column("Instance-Type", cells.label("node.kubernetes.io/instance-type")),
        Column("GPU", cells.label("nvidia.com/gpu.product"), is_wide=True),
        Column("Simulated", cells.label("slipway.dev/simulated"), is_wide=True),
    ),
    NAMESPACE: (Column("Status", _path("status", "phase", default="Active")), _AGE),
    SERVICE: (
        Column("Type", _path("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", _path("spec", "clusterIP")),
        Column("Port(s)", cells.service_ports),
        _AGE,
        Column("Selector", cells.selector, is_wide=True),
    ),
    DEPLOYMENT: (
        Column("Ready", cells.deployment_ready),
        Column("Up-to-date", _path("status", "updatedReplicas", default=0), "integer"),
        Column("Available", _path("status", "availableReplicas", default=0), "integer"),
        _AGE,
        Column("Containers", cells.template_values("name"), is_wide=True),
        Column("Images", cells.template_values("image"), is_wide=True),
        Column("Selector", cells.selector, is_wide=True),
    ),
    REPLICA_SET: (
        Column("Desired", _path("spec", "replicas", default=1), "integer"),
        Column("Current", _path("status", "replicas", default=0), "integer"),
        Column("Ready", _path("status", "readyReplicas", default=0), "integer"),
        _AGE,
    ),
    EVENT: (
        Column("Last Seen", cells.last_seen),
        Column("Type", _path("type", default="Normal")),
        Column("Reason", _path("reason", default="")),
        Column("Object", cells.event_object),
        Column("Message", _path("message", default="")),
        Column("Count", _path("count", default=1), "integer", is_wide=True),
    ),
    SECRET: (
        Column("Type", _path("type", default="Opaque")),
        Column("Data", cells.count("data"), "integer"),
        _AGE,
    ),
    CLAIM: (
        Column("Status", _path("status", "phase", default="Pending")),
        Column("Volume", _path("spec", "volumeName", default="")),
        Column("Capacity", _path("status", "capacity", "storage", default="")),
        Column("StorageClass", _path("spec", "storageClassName", default="")),
        _AGE,
    ),
    CONFIG_MAP: (Column("Data", cells.count("data"), "integer"), _AGE),
    SERVICE_ACCOUNT: (Column("Secrets", cells.count("secrets"), "integer"), _AGE),
    PDB: (
        Column("Min Available", _path("spec", "minAvailable", default="N/A")),
        Column("Max Unavailable", _path("spec", "maxUnavailable", default="N/A")),
        Column("Allowed Disruptions", _path("status", "disruptionsAllowed", default=0), "integer"),
        _AGE,
    ),
    HPA: (
        Column("Reference", cells.scale_target),
        Column("MinPods", _path("spec", "minReplicas", default=1), "integer"),
        Column("MaxPods", _path("spec", "maxReplicas", default=0), "integer"),
        Column("Replicas", _path("status", "currentReplicas", default=0), "integer"),
        _AGE,
    ),
    LEASE: (Column("Holder", _path("spec", "holderIdentity")), _AGE),
    INFERENCE_SERVICE: (
        Column("URL", _path("status", "url", default="")),
        Column("Ready", cells.condition("Ready")),
        Column("Prev", cells.traffic("prev", "percent"), "integer"),
        Column("Latest", cells.traffic("latest", "percent"), "integer"),
        Column("PrevRolledoutRevision", cells.traffic("prev", "revisionName")),
        Column("LatestReadyRevision", cells.traffic("latest", "revisionName")),
        _AGE,
    ),
    SERVING_RUNTIME: (
        Column("Disabled", _path("spec", "disabled", default="")),
        Column("ModelType", cells.first_format),
        Column("Containers", cells.first_container),
        _AGE,
    ),
    HTTP_ROUTE: (_HOSTNAMES, Column("Backends", cells.backends), _AGE),
    GATEWAY: (
        Column("Class", _path("spec", "gatewayClassName")),
        Column("Address", cells.first_address),
        Column("Programmed", cells.condition("Programmed")),
        _AGE,
    ),
    GATEWAY_CLASS: (
        Column("Controller", _path("spec", "controllerName")),
        Column("Accepted", cells.condition("Accepted")),
        _AGE,
    ),
    CRD: (Column("Created At", _path("metadata", "creationTimestamp")),),
}


def columns_of(kind: Kind) -> Sequence[Column]:
    chosen = _COLUMNS.get(kind, (_AGE,))
    # kubectl itself prints events without their names.
    return chosen if kind is EVENT else (_NAME, *chosen)


def render(
    kind: Kind, objects: Sequence[JsonObject], metadata: JsonObject, include: str
) -> JsonObject:
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": "name" if column is _NAME else "",
                "description": "",
                "priority": int(column.is_wide),
            }
            for column in columns
        ],
        "rows": [
            {"cells": [column.cell(obj) for column in columns], "object": _row_object(obj, include)}
            for obj in objects
        ],
    }


def _row_object(obj: JsonObject, include: str) -> JsonObject | None:
    if include == "Object":
        return obj
    if include == "None":
        return None
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
