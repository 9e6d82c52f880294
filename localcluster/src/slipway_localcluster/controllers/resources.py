"""Quantities of pods and nodes, as exact numbers."""

from collections.abc import Mapping
from decimal import Decimal

from kubernetes.utils import parse_quantity

from slipway_localcluster.errors import JsonObject

Amounts = Mapping[str, Decimal]


def sum_pod_requests(pod: JsonObject) -> Amounts:
    """Return the requests of a pod: the sum of its containers and sidecars, or its largest init container with the
    sidecars that start before it.
    """
    spec = pod["spec"]
    sidecars: dict[str, Decimal] = {}
    largest: dict[str, Decimal] = {}
    for container in spec.get("initContainers") or ():
        together = add(sidecars, _requests(container))
        if container.get("restartPolicy") == "Always":
            sidecars = together
        largest = {
            n: max(largest.get(n, Decimal(0)), together.get(n, Decimal(0)))
            for n in {*largest, *together}
        }
    amounts = dict(sidecars)
    for container in spec.get("containers") or ():
        amounts = add(amounts, _requests(container))
    for name, amount in largest.items():
        amounts[name] = max(amounts.get(name, Decimal(0)), amount)
    amounts["pods"] = Decimal(1)
    return amounts


def _requests(container: JsonObject) -> Amounts:
    """Return the requests of a container. A limit without a request counts as the request."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) for name, amount in requests.items()}


def read_allocatable(node: JsonObject) -> Amounts:
    status = node.get("status") or {}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    return {name: parse_quantity(amount) for name, amount in allocatable.items()}


def add(left: Amounts, right: Amounts) -> dict[str, Decimal]:
    return {
        name: left.get(name, Decimal(0)) + right.get(name, Decimal(0)) for name in {*left, *right}
    }
