"""Quantities of pods and nodes, as exact numbers."""

from collections.abc import Mapping
from decimal import Decimal

from fleet.localcluster.errors import JsonObject

Amounts = Mapping[str, Decimal]

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("0.001"),
    "": Decimal(1),
    "k": Decimal(1000),
    "M": Decimal(1000) ** 2,
    "G": Decimal(1000) ** 3,
    "T": Decimal(1000) ** 4,
    "P": Decimal(1000) ** 5,
    "Ki": Decimal(1024),
    "Mi": Decimal(1024) ** 2,
    "Gi": Decimal(1024) ** 3,
    "Ti": Decimal(1024) ** 4,
    "Pi": Decimal(1024) ** 5,
}


def parse_quantity(text: object) -> Decimal:
    """`3920m`, `14162Mi`, `1`, `1e3`; raises ValueError for anything else."""
    word = str(text).strip()
    number = word.rstrip("numkMGTPi")
    try:
        return Decimal(number) * _SUFFIXES[word[len(number) :]]
    except (ArithmeticError, KeyError) as error:
        raise ValueError(f"{text!r} is not a quantity") from error


def of_pod(pod: JsonObject) -> Amounts:
    """What a pod asks for: the sum of its containers, or its largest init container."""
    spec = pod["spec"]
    amounts: dict[str, Decimal] = {}
    for container in spec.get("containers") or ():
        amounts = add(amounts, _requests(container))
    for container in spec.get("initContainers") or ():
        for name, amount in _requests(container).items():
            amounts[name] = max(amounts.get(name, Decimal(0)), amount)
    amounts["pods"] = Decimal(1)
    return amounts


def _requests(container: JsonObject) -> Amounts:
    """Requests; a limit without a request is the request."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) for name, amount in asked.items()}


def of_node(node: JsonObject) -> Amounts:
    status = node.get("status") or {}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    return {name: parse_quantity(amount) for name, amount in allocatable.items()}


def add(left: Amounts, right: Amounts) -> dict[str, Decimal]:
    return {
        name: left.get(name, Decimal(0)) + right.get(name, Decimal(0)) for name in {*left, *right}
    }
