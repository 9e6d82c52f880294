"""Containers: ports, environment, mounts, resources, probes, security context."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    report_required,
)
from slipway_localcluster.rules.formats import (
    PROTOCOLS,
    amount_of,
    find_choice_faults,
    find_name_faults,
    find_number_faults,
    find_port_faults,
    is_environment_name,
    is_port_name,
    is_qualified_name,
)

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_LARGEST_ID = 2**31 - 1


def find_container_faults(
    path: str, container: JsonObject, volumes: Collection[str]
) -> Iterator[Cause]:
    """Find the faults of containers. `volumes` are the names that mounts may use."""
    yield from find_name_faults(f"{path}.name", container.get("name"))
    image = container.get("image")
    if not image:
        yield report_required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from find_choice_faults(
        f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES
    )
    yield from _port_faults(f"{path}.ports", container.get("ports") or ())
    yield from _environment_faults(f"{path}.env", container.get("env") or ())
    yield from _mount_faults(f"{path}.volumeMounts", container.get("volumeMounts") or (), volumes)
    yield from find_resource_faults(f"{path}.resources", container.get("resources") or {})
    for name in _PROBES:
        if container.get(name) is not None:
            yield from _probe_faults(f"{path}.{name}", name, container[name])
    yield from _security_faults(f"{path}.securityContext", container.get("securityContext") or {})


def _port_faults(path: str, ports: Collection[JsonObject]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            if not is_port_name(name):
                yield invalid(f"{here}.name", name, "must be an IANA service name")
            if name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield report_required(f"{here}.containerPort")
        else:
            yield from find_port_faults(f"{here}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from find_port_faults(f"{here}.hostPort", port["hostPort"])
        yield from find_choice_faults(f"{here}.protocol", port.get("protocol"), PROTOCOLS)


def _environment_faults(path: str, variables: Collection[JsonObject]) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        here, name = f"{path}[{index}]", variable.get("name")
        if not name:
            yield report_required(f"{here}.name")
        elif not is_environment_name(name):
            yield invalid(f"{here}.name", name, "must be printable ASCII characters without '='")
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            detail = "may not be specified when `value` is not empty"
            yield invalid(f"{here}.valueFrom", "", detail)
        elif len(source) != 1:
            detail = "may not have more than one field specified at a time"
            yield invalid(f"{here}.valueFrom", "", detail)


def _mount_faults(
    path: str, mounts: Collection[JsonObject], volumes: Collection[str]
) -> Iterator[Cause]:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, place = f"{path}[{index}]", mount.get("name"), mount.get("mountPath")
        if not name:
            yield report_required(f"{here}.name")
        elif name not in volumes:
            yield not_found(f"{here}.name", name)
        if not place:
            yield report_required(f"{here}.mountPath")
        elif place in places:
            yield invalid(f"{here}.mountPath", place, "must be unique")
        places.add(str(place))


def find_resource_faults(path: str, resources: JsonObject) -> Iterator[Cause]:
    """Find the faults of a container's requests and limits, which must be quantities."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_faults(f"{path}.{field}[{name}]", name, amount)
    for name, amount in requests.items():
        yield from _request_faults(path, name, amount, limits)


def _amount_faults(field: str, name: str, amount: Any) -> Iterator[Cause]:
    if not _is_native(name) and ("/" not in name or not is_qualified_name(name)):
        detail = "must be a standard resource type or fully qualified"
        yield invalid(field, name, detail)
    value = amount_of(amount)
    if value < 0:
        yield invalid(field, str(amount), "must be greater than or equal to 0")
    elif not _is_native(name) and value != value.to_integral_value():
        yield invalid(field, str(amount), "must be an integer")


def _request_faults(
    path: str, name: str, request: Any, limits: Mapping[str, Any]
) -> Iterator[Cause]:
    limit: Decimal | None = amount_of(limits[name]) if name in limits else None
    shown = limits.get(name)
    if limit is None:
        if not _is_native(name):
            yield report_required(
                f"{path}.limits", "limit must be set for non overcommitable resources"
            )
    elif not _is_native(name) and amount_of(request) != limit:
        yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {shown}")
    elif amount_of(request) > limit:
        detail = f"must be less than or equal to {name} limit of {shown}"
        yield invalid(f"{path}.requests", request, detail)


def _is_native(name: str) -> bool:
    """Others, GPUs for example, can be neither shared in fractions nor overcommitted."""
    return name in _NATIVE_RESOURCES or name.startswith("hugepages-")


def _probe_faults(path: str, name: str, probe: JsonObject) -> Iterator[Cause]:
    handlers = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    if not handlers:
        yield report_required(path, "must specify a handler type")
    for handler in handlers[1:]:
        yield forbidden(f"{path}.{handler}", "may not specify more than 1 handler type")
    if handlers:
        yield from _handler_faults(f"{path}.{handlers[0]}", handlers[0], probe[handlers[0]])
    for field in _PROBE_NUMBERS:
        yield from find_number_faults(f"{path}.{field}", probe.get(field))
    if name != "readinessProbe" and probe.get("successThreshold", 1) not in (0, 1):
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_faults(path: str, kind: str, handler: JsonObject) -> Iterator[Cause]:
    if kind == "exec":
        if not handler.get("command"):
            yield report_required(f"{path}.command")
        return
    yield from find_port_faults(f"{path}.port", handler.get("port"))
    if kind == "httpGet":
        yield from find_choice_faults(f"{path}.scheme", handler.get("scheme"), ("HTTP", "HTTPS"))


def _security_faults(path: str, context: JsonObject) -> Iterator[Cause]:
    for field in ("runAsUser", "runAsGroup"):
        number = context.get(field)
        if number is not None and not 0 <= number <= _LARGEST_ID:
            yield invalid(f"{path}.{field}", number, f"must be between 0 and {_LARGEST_ID}")
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        yield invalid(path, context, "cannot be privileged without allowPrivilegeEscalation")
