"""Deployments and ReplicaSets."""

from collections.abc import Iterator, Mapping
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import (
    forbidden,
    invalid,
    report_required,
    report_unsupported,
)
from slipway_localcluster.rules.formats import (
    find_label_faults,
    find_number_faults,
    find_selector_faults,
)
from slipway_localcluster.rules.pods import find_pod_spec_faults

_STRATEGIES = ("Recreate", "RollingUpdate")


def find_deployment_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from find_replica_set_faults(obj)
    yield from _strategy_faults("spec.strategy", spec.get("strategy") or {})
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", deadline, detail)


def find_replica_set_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    for field in ("replicas", "minReadySeconds"):
        yield from find_number_faults(f"spec.{field}", spec.get(field))
    selector = spec.get("selector")
    if selector is None:
        yield report_required("spec.selector")
    elif not any(selector.values()):
        yield invalid("spec.selector", selector, "empty selector is invalid")
    faults = list(find_selector_faults("spec.selector", selector))
    yield from faults
    if not faults and not is_selected(selector, labels):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)
    yield from find_label_faults("spec.template.labels", labels)
    yield from find_pod_spec_faults("spec.template.spec", template.get("spec") or {}, ("Always",))


def _strategy_faults(path: str, strategy: JsonObject) -> Iterator[Cause]:
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in _STRATEGIES:
        yield report_unsupported(path, strategy, _STRATEGIES)
    elif kind == "Recreate" and rolling is not None:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden(f"{path}.rollingUpdate", detail)
    elif rolling is not None:
        amounts = {name: rolling.get(name, "25%") for name in ("maxUnavailable", "maxSurge")}
        for name, amount in amounts.items():
            yield from find_share_faults(f"{path}.rollingUpdate.{name}", amount)
        if all(amount in (0, "0%") for amount in amounts.values()):
            detail = "may not be 0 when `maxSurge` is 0"
            yield invalid(f"{path}.rollingUpdate.maxUnavailable", 0, detail)


def find_share_faults(field: str, amount: Any) -> Iterator[Cause]:
    """Find the faults of a share: a number of pods, or a percentage of at most 100."""
    if isinstance(amount, int):
        yield from find_number_faults(field, amount)
        return
    digits = str(amount).removesuffix("%")
    if not (str(amount).endswith("%") and digits.isdigit()):
        yield invalid(field, amount, "a valid percent string must be a number followed by '%'")
    elif int(digits) > 100 and not field.endswith("maxSurge"):
        yield invalid(field, amount, "must not be greater than 100%")


def is_selected(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels. No selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    is_equal = (selector.get("matchLabels") or {}).items() <= labels.items()
    return is_equal and all(
        _is_met(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _is_met(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    return (labels.get(key) in expression["values"]) is (operator == "In")
