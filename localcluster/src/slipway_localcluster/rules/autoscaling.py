"""HorizontalPodAutoscalers."""

from collections.abc import Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import forbidden, invalid, report_required
from slipway_localcluster.rules.formats import amount_of, find_choice_faults, find_number_faults

# The field that holds the source of each type of metric.
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_VALUES = ("averageUtilization", "averageValue", "value")
_TARGETS = ("AverageValue", "Utilization", "Value")


def find_autoscaler_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    for field in ("kind", "name"):
        if not target.get(field):
            yield report_required(f"spec.scaleTargetRef.{field}")
    if not target.get("apiVersion"):
        yield invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group")
    metrics = spec.get("metrics") or ()
    yield from _bound_faults(spec)
    for index, metric in enumerate(metrics):
        yield from _metric_faults(f"spec.metrics[{index}]", metric)


def _bound_faults(spec: JsonObject) -> Iterator[Cause]:
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    metrics = spec.get("metrics") or ()
    can_be_zero = any(metric.get("type") in ("Object", "External") for metric in metrics)
    if least < 0 or (least == 0 and not can_be_zero):
        yield from find_number_faults("spec.minReplicas", least, least=1)
    if least == 0 and metrics and not can_be_zero:
        detail = "must specify at least one Object or External metric to scale to zero"
        yield forbidden("spec.metrics", detail)
    if most < 1:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    elif most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _metric_faults(path: str, metric: JsonObject) -> Iterator[Cause]:
    kind = metric.get("type", "")
    if kind not in _SOURCES:
        yield from find_choice_faults(f"{path}.type", kind, _SOURCES)
        return
    name = _SOURCES[kind]
    source = metric.get(name)
    if source is None:
        yield report_required(
            f"{path}.{name}", "must populate information for the given metric source"
        )
        return
    for field in _SOURCES.values():
        if field != name and metric.get(field) is not None:
            detail = "must populate the given metric source only"
            yield forbidden(f"{path}.{field}", detail)
    if "esource" in kind and not source.get("name"):
        yield report_required(f"{path}.{name}.name", "must specify a resource name")
    yield from _target_faults(f"{path}.{name}.target", source.get("target") or {}, kind)


def _target_faults(path: str, target: JsonObject, kind: str) -> Iterator[Cause]:
    yield from find_choice_faults(f"{path}.type", target.get("type", ""), _TARGETS)
    if "averageUtilization" in target:
        share = target["averageUtilization"]
        yield from find_number_faults(f"{path}.averageUtilization", share, least=1)
    for field in ("averageValue", "value"):
        if field in target and amount_of(target[field]) <= 0:
            yield invalid(f"{path}.{field}", str(target[field]), "must be positive")
    if not any(field in target for field in _VALUES):
        first = "averageUtilization" if "esource" in kind else "averageValue"
        yield report_required(
            f"{path}.{first}", "must set either a target raw value or a utilization"
        )
