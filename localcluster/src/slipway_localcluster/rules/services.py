"""Services."""

import ipaddress
from collections.abc import Collection, Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import duplicate, invalid, report_required
from slipway_localcluster.rules.formats import (
    PROTOCOLS,
    find_choice_faults,
    find_label_faults,
    find_name_faults,
    find_port_faults,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_NO_ADDRESS = ("", "None")


def find_service_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    ports = spec.get("ports") or ()
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield report_required("spec.ports")
    yield from _port_faults("spec.ports", ports)
    yield from find_choice_faults("spec.type", spec.get("type"), _TYPES)
    yield from find_label_faults("spec.selector", spec.get("selector"))
    address = spec.get("clusterIP") or ""
    if address not in _NO_ADDRESS and not _is_address(address):
        yield invalid("spec.clusterIPs[0]", address, "must be a valid IP address")


def _port_faults(path: str, ports: Collection[JsonObject]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name or len(ports) > 1:
            yield from find_name_faults(f"{here}.name", name)
        if name and name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name or "")
        yield from find_port_faults(f"{here}.port", port.get("port", 0))
        yield from find_choice_faults(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        if port.get("targetPort") not in (None, 0, ""):
            yield from find_port_faults(f"{here}.targetPort", port["targetPort"])


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
