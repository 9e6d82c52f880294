"""Validation of pods: quantities, GPUs, and the selector of a pod template."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from fleet.localcluster.errors import Cause, JsonObject
from fleet.localcluster.kinds import (
    CLUSTER_SERVING_RUNTIME,
    DEPLOYMENT,
    INFERENCE_SERVICE,
    POD,
    REPLICA_SET,
    SERVING_RUNTIME,
    Kind,
)

_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_TEMPLATES = (DEPLOYMENT, REPLICA_SET)


def find_pod_faults(kind: Kind, obj: JsonObject) -> Iterator[Cause]:
    """Faults of every container in the object; its field types must have been checked."""
    for path, resources in _resources(kind, obj):
        yield from _resource_faults(path, resources)
    if kind in _TEMPLATES:
        yield from _selector_faults(obj)


def _resources(kind: Kind, obj: JsonObject) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, container in _containers(kind, obj):
        resources = container.get("resources") if isinstance(container, dict) else None
        if isinstance(resources, dict):
            yield f"{path}.resources", resources


def _containers(kind: Kind, obj: JsonObject) -> Iterator[tuple[str, Any]]:
    spec = obj.get("spec") or {}
    if kind is INFERENCE_SERVICE:
        predictor = spec.get("predictor") if isinstance(spec, dict) else None
        predictor = predictor if isinstance(predictor, dict) else {}
        yield "spec.predictor.model", predictor.get("model")
        yield from _listed("spec.predictor", predictor)
    elif kind in (POD, SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME):
        yield from _listed("spec", spec)
    elif kind in _TEMPLATES:
        yield from _listed("spec.template.spec", (spec.get("template") or {}).get("spec") or {})


def _listed(path: str, pod: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or []):
            yield f"{path}.{field}[{index}]", container


def _resource_faults(path: str, resources: Mapping[str, Any]) -> Iterator[Cause]:
    requests = resources.get("requests") or {}
    limits = resources.get("limits") or {}
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            if isinstance(amount, bool) or not _QUANTITY.fullmatch(str(amount)):
                message = f'Invalid value: "{amount}": is not a quantity, like 500m, 2 or 4Gi'
                yield Cause("FieldValueInvalid", message, f"{path}.{field}.{name}")
    for name in sorted({*requests, *limits}):
        if _is_extended(name):
            yield from _extended_faults(path, name, requests.get(name), limits.get(name))


def _is_extended(name: str) -> bool:
    """GPUs and other devices, which cannot be shared in fractions or overcommitted."""
    return name not in _NATIVE_RESOURCES and not name.startswith("hugepages-")


def _extended_faults(path: str, name: str, request: Any, limit: Any) -> Iterator[Cause]:
    for field, amount in (("requests", request), ("limits", limit)):
        if amount is not None and not _is_whole(amount):
            message = f'Invalid value: "{amount}": must be an integer'
            yield Cause("FieldValueInvalid", message, f"{path}.{field}.{name}")
    if limit is None:
        message = f"Required value: limit must be set for non overcommitable resource {name}"
        yield Cause("FieldValueRequired", message, f"{path}.limits")
    elif request is not None and str(request) != str(limit):
        message = f'Invalid value: "{request}": must be equal to {name} limit of {limit}'
        yield Cause("FieldValueInvalid", message, f"{path}.requests")


def _is_whole(amount: Any) -> bool:
    try:
        number = Decimal(str(amount))
    except InvalidOperation:
        return False
    return number >= 0 and number == number.to_integral_value()


def _selector_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not selector.items() <= labels.items():
        message = "Invalid value: `selector` does not match template `labels`"
        yield Cause("FieldValueInvalid", message, "spec.template.metadata.labels")
