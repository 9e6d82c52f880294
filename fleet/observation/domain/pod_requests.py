"""CPU, memory and GPUs that the scheduler reserves for a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from fleet.gpus.domain import shares
from fleet.kube.domain import quantities

Json = Mapping[str, Any]
_ALWAYS: Final = "Always"
_Parse = Callable[[object], int | None]


def cpu_and_memory(spec: Json) -> tuple[int, int]:
    """Return millicores and bytes: the sum of the containers or, if larger, the largest init container plus
    sidecars; and the pod's overhead.
    """
    return (
        _amount(spec, "cpu", quantities.millicores),
        _amount(spec, "memory", quantities.whole_bytes),
    )


def gpus(spec: Json) -> tuple[str, int]:
    """Return the GPU resource and amount, by the same rule; "" and 0 without any. If there are several, the one
    with the largest amount.
    """
    every = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    names = {name for container in every for name in _amounts(container) if shares.is_gpu(name)}
    requested = {name: _reserved(spec, partial(_count, name)) for name in names}
    name = max(requested, key=lambda key: (requested[key], key), default="")
    return (name, requested[name]) if name and requested[name] else ("", 0)


def _amount(spec: Json, name: str, parse: _Parse) -> int:
    overhead = parse((spec.get("overhead") or {}).get(name, "0")) or 0
    return _reserved(spec, lambda container: _request(container, name, parse)) + overhead


def _reserved(spec: Json, request: Callable[[Json], int]) -> int:
    """A sidecar, an init container that is restarted always, runs beside all that start after it."""
    sidecars = largest = 0
    for container in spec.get("initContainers") or []:
        requested = request(container)
        if container.get("restartPolicy") == _ALWAYS:
            sidecars += requested
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + requested)
    containers = sum(request(container) for container in spec.get("containers") or [])
    return max(containers + sidecars, largest)


def _request(container: Json, name: str, parse: _Parse) -> int:
    return max(0, parse(_amounts(container).get(name, "0")) or 0)


def _count(name: str, container: Json) -> int:
    """Extended resources are whole numbers."""
    amount = str(_amounts(container).get(name, ""))
    return int(amount) if amount.isdigit() else 0


def _amounts(container: Json) -> dict[str, Any]:
    """A limit without a request is the request."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
