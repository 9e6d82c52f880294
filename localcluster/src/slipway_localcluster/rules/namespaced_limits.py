"""ResourceQuotas and LimitRanges."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import duplicate, invalid
from slipway_localcluster.rules.formats import amount_of, is_qualified_name

_COUNTED = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_AMOUNTS = frozenset({"cpu", "memory", "storage", "ephemeral-storage"})


def find_quota_faults(obj: JsonObject) -> Iterator[Cause]:
    for name, amount in ((obj.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        if not _is_resource(name):
            yield invalid(field, name, "must be a standard resource for quota")
        if amount_of(amount) < 0:
            yield invalid(field, str(amount), "must be greater than or equal to 0")
        elif name in _COUNTED and amount_of(amount) % 1:
            yield invalid(field, str(amount), "must be an integer")


def _is_resource(name: str) -> bool:
    plain = name.removeprefix("requests.").removeprefix("limits.")
    if "/" in plain:
        return is_qualified_name(plain)
    return name in _COUNTED or plain in _AMOUNTS or plain.startswith("hugepages-")


def find_limit_range_faults(obj: JsonObject) -> Iterator[Cause]:
    kinds: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        if kind in kinds:
            yield duplicate(f"{path}.type", kind)
        kinds.add(kind)
        yield from _order_faults(path, limit)


def _order_faults(path: str, limit: JsonObject) -> Iterator[Cause]:
    """min ≤ defaultRequest ≤ default ≤ max, for each resource; what is absent is set from the next."""
    names = {name for amounts in limit.values() if isinstance(amounts, dict) for name in amounts}
    for name in sorted(names):
        values = _completed(limit, name)
        for smaller, larger in _ORDER:
            if _exceeds(values[smaller], values[larger]):
                field = "min" if (smaller, larger) == ("min", "max") else _faulty(smaller, larger)
                detail = f"{smaller} value is greater than {larger} value"
                yield invalid(f"{path}.{field}[{name}]", str(values[smaller]), detail)


_ORDER = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("min", "default"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
    ("default", "max"),
)


def _faulty(smaller: str, larger: str) -> str:
    return larger if smaller == "min" else smaller


def _completed(limit: JsonObject, name: str) -> dict[str, Decimal | None]:
    values: dict[str, Any] = {
        field: (limit.get(field) or {}).get(name)
        for field in ("min", "defaultRequest", "default", "max")
    }
    if limit.get("type") == "Container":
        values["default"] = values["default"] or values["max"]
        values["defaultRequest"] = values["defaultRequest"] or values["default"] or values["min"]
    return {field: None if value is None else amount_of(value) for field, value in values.items()}


def _exceeds(left: Decimal | None, right: Decimal | None) -> bool:
    return left is not None and right is not None and left > right
