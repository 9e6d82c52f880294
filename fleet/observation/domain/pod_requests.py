"""CPU and memory that the scheduler reserves for a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fleet.kube.domain import quantities

Json = Mapping[str, Any]
_ALWAYS: Final = "Always"
_Parse = Callable[[object], int | None]


def cpu_and_memory(spec: Json) -> tuple[int, int]:
    """Millicores and bytes: the sum of the containers or, if larger, the largest init container plus
    sidecars; and the pod's overhead.
    """
    return (
        _amount(spec, "cpu", quantities.millicores),
        _amount(spec, "memory", quantities.whole_bytes),
    )


def _amount(spec: Json, name: str, parse: _Parse) -> int:
    sidecars = largest = 0
    for container in spec.get("initContainers") or []:
        requested = _request(container, name, parse)
        if container.get("restartPolicy") == _ALWAYS:
            sidecars += requested
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + requested)
    containers = sum(_request(container, name, parse) for container in spec.get("containers") or [])
    overhead = parse((spec.get("overhead") or {}).get(name, "0")) or 0
    return max(containers + sidecars, largest) + overhead


def _request(container: Json, name: str, parse: _Parse) -> int:
    """A limit without a request is the request."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return max(0, parse(amounts.get(name, "0")) or 0)
