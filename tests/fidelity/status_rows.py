"""Status and scale of objects."""

from __future__ import annotations

from typing import Any

from tests.fidelity.change import (
    Changes,
    apply,
    patch,
    replace,
)
from tests.fidelity.objects import (
    AUTOSCALER,
    BUDGET,
    CONFIG,
    DEPLOYMENT,
    JOB,
    MODEL,
    POD,
    QUOTA,
    ROUTE,
)
from tests.fidelity.row import Json

ROWS = Changes()

_READY: Json = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_PARENT: Json = {
    "parentRef": {"name": "slipway"},
    "controllerName": "slipway.dev/gateway",
    "conditions": [_READY],
}


def _status(name: str, status: Any, **also: Any) -> None:
    body = {"status": status, **also}
    ROWS.add(name, ROUTE, patch(body, subresource="status"))


_status("route-status", {"parents": [_PARENT]})
_status("route-status-without-parents", {})
_status("route-status-null-parents", {"parents": None})
_status("route-status-of-33-parents", {"parents": [_PARENT] * 33})
_status("route-status-without-controller", {"parents": [{**_PARENT, "controllerName": None}]})
_status("route-status-of-a-bad-controller", {"parents": [{**_PARENT, "controllerName": "none"}]})
_status("route-status-without-parent-name", {"parents": [{**_PARENT, "parentRef": {}}]})
_status(
    "route-status-of-a-bad-condition",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "status": "Yes"}]}]},
)
_status(
    "route-status-of-a-bad-reason",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "reason": "no reason"}]}]},
)
_status(
    "route-status-without-reason",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "reason": None}]}]},
)
_status(
    "route-status-of-a-bad-time",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "lastTransitionTime": "today"}]}]},
)
_status(
    "route-status-of-two-equal-conditions",
    {"parents": [{**_PARENT, "conditions": [_READY, _READY]}]},
)
_status("route-status-as-text", "ready")
_status("route-status-with-a-bad-spec", {"parents": [_PARENT]}, spec={"rules": {}})
ROWS.add("route-status-in-the-route", ROUTE, patch({"status": {"parents": "none"}}))
ROWS.add(
    "route-status-applied",
    ROUTE,
    apply({**ROUTE, "status": {"parents": [_PARENT]}}, subresource="status"),
)
ROWS.add(
    "route-status-replaced-of-no-version",
    ROUTE,
    replace({**ROUTE, "status": {"parents": [_PARENT]}}, subresource="status"),
)
ROWS.add("config-map-status", CONFIG, patch({"status": {}}, subresource="status"))
ROWS.add(
    "deployment-scale-below-zero",
    DEPLOYMENT,
    patch({"spec": {"replicas": -1}}, subresource="scale"),
)
ROWS.add(
    "deployment-scale-as-text",
    DEPLOYMENT,
    patch({"spec": {"replicas": "two"}}, subresource="scale"),
)
ROWS.add(
    "deployment-status-below-zero",
    DEPLOYMENT,
    patch({"status": {"replicas": -1}}, subresource="status"),
)


ROWS.add("service-status-as-text", MODEL, patch({"status": "ready"}, subresource="status"))
ROWS.add("service-status-of-a-bad-url", MODEL, patch({"status": {"url": 5}}, subresource="status"))
ROWS.add(
    "budget-status-as-text",
    BUDGET,
    patch({"status": {"currentHealthy": "1"}}, subresource="status"),
)
ROWS.add(
    "budget-status-below-zero",
    BUDGET,
    patch({"status": {"currentHealthy": -1}}, subresource="status"),
)
ROWS.add(
    "autoscaler-status-below-zero",
    AUTOSCALER,
    patch({"status": {"desiredReplicas": -1}}, subresource="status"),
)
ROWS.add("pod-phase-unknown", POD, patch({"status": {"phase": "Sleeping"}}, subresource="status"))
ROWS.add("job-status-below-zero", JOB, patch({"status": {"active": -1}}, subresource="status"))
ROWS.add("quota-status", QUOTA, patch({"status": {"used": {"pods": "-1"}}}, subresource="status"))
ROWS.add("scale-of-a-config-map", CONFIG, patch({"spec": {"replicas": 1}}, subresource="scale"))
ROWS.add(
    "scale-of-another-version",
    DEPLOYMENT,
    patch({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}, subresource="scale"),
)
ROWS.add("unknown-subresource", CONFIG, patch({}, subresource="proxy"))
