"""Pods and the templates that make them."""

from collections.abc import Collection, Iterator
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import (
    duplicate,
    forbidden,
    invalid,
    report_required,
    report_unsupported,
)
from slipway_localcluster.rules.containers import find_container_faults
from slipway_localcluster.rules.formats import (
    find_choice_faults,
    find_expression_faults,
    find_label_faults,
    find_name_faults,
    find_selector_faults,
    is_qualified_name,
    is_subdomain,
)

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NUMBERS = ("Gt", "Lt")
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def find_pod_faults(obj: JsonObject) -> Iterator[Cause]:
    yield from find_pod_spec_faults("spec", obj.get("spec") or {}, _RESTART_POLICIES)


def find_pod_spec_faults(
    path: str, spec: JsonObject, restart_policies: Collection[str]
) -> Iterator[Cause]:
    volumes: set[str] = set()
    yield from _volume_faults(f"{path}.volumes", spec.get("volumes") or (), volumes)
    yield from _containers_faults(path, spec, volumes)
    policy = spec.get("restartPolicy")
    yield from find_choice_faults(f"{path}.restartPolicy", policy, restart_policies)
    yield from find_choice_faults(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    yield from find_label_faults(f"{path}.nodeSelector", spec.get("nodeSelector"))
    account = spec.get("serviceAccountName")
    if account and not is_subdomain(account):
        yield invalid(f"{path}.serviceAccountName", account, "a lowercase RFC 1123 subdomain")
    if spec.get("hostNetwork"):
        yield from _host_port_faults(f"{path}.containers", spec.get("containers") or ())
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(f"{path}.tolerations[{index}]", toleration)
    yield from _spread_faults(
        f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints") or ()
    )
    yield from _node_affinity_faults(f"{path}.affinity.nodeAffinity", spec.get("affinity") or {})


def _containers_faults(path: str, spec: JsonObject, volumes: set[str]) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield report_required(f"{path}.containers")
    names: set[Any] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            here, name = f"{path}.{field}[{index}]", container.get("name")
            if name and name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
            yield from find_container_faults(here, container, volumes)


def _volume_faults(path: str, volumes: Collection[JsonObject], usable: set[str]) -> Iterator[Cause]:
    """Find the faults of volumes, and fill `usable` with the names of volumes that are right."""
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name")
        faults = list(find_name_faults(f"{here}.name", name))
        if not faults and name in usable:
            faults = [duplicate(f"{here}.name", name)]
        # A volume without a source is an emptyDir.
        sources = [field for field, value in volume.items() if field != "name" and value]
        detail = "may not specify more than 1 volume type"
        faults += [forbidden(f"{here}.{field}", detail) for field in sorted(sources)[1:]]
        if not faults:
            usable.add(str(name))
        yield from faults


def _host_port_faults(path: str, containers: Collection[JsonObject]) -> Iterator[Cause]:
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("containerPort")
            if port.get("hostPort", number) != number:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}[{index}].ports[{position}].hostPort", number, detail)


def _toleration_faults(path: str, toleration: JsonObject) -> Iterator[Cause]:
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if key and not is_qualified_name(key):
        yield invalid(f"{path}.key", key, "must be a qualified name")
    if not key and operator != "Exists":
        yield invalid(f"{path}.operator", operator, "must be Exists when `key` is empty")
    if operator == "Exists" and toleration.get("value"):
        detail = "value must be empty when `operator` is 'Exists'"
        yield invalid(f"{path}.operator", toleration, detail)
    elif operator not in ("Exists", "Equal"):
        yield report_unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    yield from find_choice_faults(f"{path}.effect", toleration.get("effect"), ("", *_EFFECTS))


def _spread_faults(path: str, constraints: Collection[JsonObject]) -> Iterator[Cause]:
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            yield invalid(f"{here}.maxSkew", constraint.get("maxSkew", 0), "must be greater than 0")
        if not constraint.get("topologyKey"):
            yield report_required(f"{here}.topologyKey", "can not be empty")
        action = constraint.get("whenUnsatisfiable", "")
        allowed = ("DoNotSchedule", "ScheduleAnyway")
        yield from find_choice_faults(f"{here}.whenUnsatisfiable", action, allowed)
        yield from find_selector_faults(f"{here}.labelSelector", constraint.get("labelSelector"))


def _node_affinity_faults(path: str, affinity: JsonObject) -> Iterator[Cause]:
    terms = ((affinity.get("nodeAffinity") or {}).get(_REQUIRED_TERMS) or {}).get(
        "nodeSelectorTerms"
    )
    for index, term in enumerate(terms or ()):
        here = f"{path}.{_REQUIRED_TERMS}.nodeSelectorTerms[{index}].matchExpressions"
        for position, expression in enumerate(term.get("matchExpressions") or ()):
            yield from find_expression_faults(f"{here}[{position}]", expression, _NUMBERS)
