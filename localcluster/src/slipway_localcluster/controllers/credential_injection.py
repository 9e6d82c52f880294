"""HTTPRouteFilters of Envoy Gateway with `credentialInjection`, as headers of Envoy's route: pure.

Envoy Gateway injects in a filter of its own; for a text of a Secret the outcome is the same.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slipway_localcluster.controllers.ownership import is_deleted
from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import HTTP_ROUTE_FILTER

_DEFAULT_HEADER = "Authorization"
_KEY = "credential"


@dataclass(frozen=True, slots=True)
class Injection:
    """The header that a route adds to requests. A `problem` means that nobody is served."""

    header: str = ""
    value: str = ""
    overwrites: bool = False
    problem: str = ""

    def headers(self) -> list[JsonObject]:
        action = "OVERWRITE_IF_EXISTS_OR_ADD" if self.overwrites else "ADD_IF_ABSENT"
        # A percent sign begins a variable of Envoy.
        header = {"key": self.header, "value": self.value.replace("%", "%%")}
        return [{"header": header, "append_action": action}]


def read(filters: Iterable[JsonObject], secrets: Mapping[Key, JsonObject]) -> dict[Key, Injection]:
    """Read the injections, by namespace and name of their filter."""
    return {
        (item["metadata"]["namespace"], item["metadata"]["name"]): _of(item, secrets)
        for item in filters
        if not is_deleted(item)
    }


def find_for_rule(
    namespace: str, rule: JsonObject, known: Mapping[Key, Injection]
) -> Injection | None:
    """Find the first filter that the rule names; one that is missing, or of another kind, has a problem. None if none."""
    for item in rule.get("filters") or ():
        reference = item.get("extensionRef")
        if not reference:
            continue
        if (reference["group"], reference["kind"]) != (
            HTTP_ROUTE_FILTER.group,
            HTTP_ROUTE_FILTER.kind,
        ):
            return Injection(problem=f"{reference['kind']} is not supported")
        missing = Injection(problem=f"HTTPRouteFilter {reference['name']} does not exist")
        return known.get((namespace, reference["name"]), missing)
    return None


def _of(item: JsonObject, secrets: Mapping[Key, JsonObject]) -> Injection:
    namespace = item["metadata"]["namespace"]
    injection = item["spec"].get("credentialInjection")
    if not injection:
        return Injection(problem="only credentialInjection is supported")
    reference = injection["credential"]["valueRef"]
    if reference.get("namespace", namespace) != namespace:
        return Injection(problem="a Secret of another namespace is not supported")
    secret = secrets.get((namespace, reference["name"]))
    if secret is None or is_deleted(secret):
        return Injection(problem=f"Secret {namespace}/{reference['name']} does not exist")
    try:
        value = base64.b64decode((secret.get("data") or {}).get(_KEY, "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        value = ""
    if not value:
        return Injection(problem=f"Secret {namespace}/{reference['name']} has no {_KEY}")
    return Injection(
        header=injection.get("header") or _DEFAULT_HEADER,
        value=value,
        overwrites=bool(injection.get("overwrite")),
    )
