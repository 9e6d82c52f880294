"""Translates HTTPRoutes and Services for Envoy, and computes route statuses: pure."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from slipway_localcluster.controllers import conditions, credential_injection
from slipway_localcluster.controllers.credential_injection import Injection
from slipway_localcluster.controllers.envoy_config import (
    HTTP2_SUFFIX,
    OPEN,
    Backend,
    Endpoint,
    Mirror,
    Policies,
    Route,
)
from slipway_localcluster.controllers.ownership import is_deleted
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.errors import JsonObject

CONTROLLER = "slipway.dev/local-envoy"
_DURATION = re.compile(r"(\d+)(h|ms|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DEFAULT_TIMEOUT = "60s"
_MIRROR = "RequestMirror"
_HEADERS = "RequestHeaderModifier"
_EXTENSION = "ExtensionRef"
_HTTP2 = "kubernetes.io/h2c"
_REPLACEMENTS = {
    "ReplacePrefixMatch": "replacePrefixMatch",
    "ReplaceFullPath": "replaceFullPath",
}
NO_INJECTIONS: Mapping[tuple[str, str], Injection] = MappingProxyType({})
# Supported features beyond the core of the Gateway API, named as in its conformance tests.
FEATURES = (
    "Gateway",
    "HTTPRoute",
    "HTTPRoutePathRewrite",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    # Not of the Gateway API: its metrics have the tokens of each caller.
    "slipway.dev/TokenCounts",
)


class UnsupportedRoute(Exception):
    """The route uses a feature that this gateway does not support."""


@dataclass(frozen=True, slots=True)
class BackendService:
    """A Service port that a route references."""

    namespace: str
    name: str
    port: int

    is_http2: bool = False

    @property
    def cluster(self) -> str:
        name = f"{self.namespace}_{self.name}_{self.port}"
        return f"{name}{HTTP2_SUFFIX}" if self.is_http2 else name


# Namespace, name and number of Service ports that speak HTTP/2 without TLS.
Http2Ports = Set[tuple[str, str, int]]


def http2_ports(services: Iterable[JsonObject]) -> Http2Ports:
    return {
        (service["metadata"]["namespace"], service["metadata"]["name"], int(port["port"]))
        for service in services
        for port in service["spec"].get("ports") or ()
        if port.get("appProtocol") == _HTTP2
    }


def backends_of(route: JsonObject, http2: Http2Ports = frozenset()) -> dict[BackendService, None]:
    """Return the backends in the order of the route, each once, including those of mirrors."""
    namespace = route["metadata"]["namespace"]
    return {
        _backend(namespace, item, http2): None
        for rule in route["spec"].get("rules") or ()
        for item in (*(rule.get("backendRefs") or ()), *_mirrored(rule))
    }


def _mirrored(rule: JsonObject) -> list[JsonObject]:
    mirrors = (item.get("requestMirror") for item in rule.get("filters") or ())
    return [mirror["backendRef"] for mirror in mirrors if mirror]


def _backend(namespace: str, reference: JsonObject, http2: Http2Ports) -> BackendService:
    place = (
        str(reference.get("namespace") or namespace),
        str(reference["name"]),
        int(reference["port"]),
    )
    return BackendService(*place, is_http2=place in http2)


def routes_of(
    route: JsonObject,
    http2: Http2Ports = frozenset(),
    policies: Policies = OPEN,
    injections: Mapping[tuple[str, str], Injection] = NO_INJECTIONS,
) -> list[Route]:
    """Return the routes of an HTTPRoute. `policies` say who may call it, and how often. Raises UnsupportedRoute."""
    namespace = route["metadata"]["namespace"]
    return [
        replace(item, injection=credential_injection.find_for_rule(namespace, rule, injections))
        for rule in route["spec"].get("rules") or ()
        for item in _rule_routes(route, rule, http2, policies)
    ]


def _rule_routes(
    route: JsonObject, rule: JsonObject, http2: Http2Ports, policies: Policies
) -> list[Route]:
    namespace = route["metadata"]["namespace"]
    backends = tuple(
        Backend(_backend(namespace, item, http2).cluster, int(item.get("weight", 1)))
        for item in rule.get("backendRefs") or ()
    )
    filters = rule.get("filters") or ()
    others = [item for item in filters if item.get("type") not in (_MIRROR, _HEADERS, _EXTENSION)]
    rewrite, replaces_path = _rewrite(others)
    mirroring = [item for item in filters if item.get("type") == _MIRROR]
    mirrors = _mirrors(namespace, mirroring, http2)
    timeout = _timeout((rule.get("timeouts") or {}).get("request"))
    routes = []
    for match in rule.get("matches") or [{}]:
        path = match.get("path") or {"type": "PathPrefix", "value": "/"}
        kind = path.get("type", "PathPrefix")
        if kind not in ("PathPrefix", "Exact") or set(match) - {"path", "headers"}:
            raise UnsupportedRoute("only PathPrefix, Exact and exact header matches are supported")
        routes.append(
            Route(
                path=str(path["value"]).rstrip("/") or "/",
                is_exact=kind == "Exact",
                headers=_headers(match.get("headers") or ()),
                rewrite=rewrite,
                replaces_path=replaces_path,
                timeout=timeout,
                backends=backends,
                mirrors=mirrors,
                policies=policies,
                removed_headers=_removed_headers(filters),
            )
        )
    return routes


def _removed_headers(filters: Sequence[JsonObject]) -> tuple[str, ...]:
    modifiers = [item["requestHeaderModifier"] for item in filters if item.get("type") == _HEADERS]
    if any(set(item) != {"remove"} for item in modifiers):
        raise UnsupportedRoute("a RequestHeaderModifier may only remove headers")
    return tuple(name for item in modifiers for name in item["remove"])


def _headers(matches: Sequence[JsonObject]) -> tuple[tuple[str, str], ...]:
    if any(item.get("type", "Exact") != "Exact" for item in matches):
        raise UnsupportedRoute("only exact header matches are supported")
    return tuple((str(item["name"]), str(item["value"])) for item in matches)


def _rewrite(filters: Sequence[JsonObject]) -> tuple[str | None, bool]:
    """Return the replacement, and whether it replaces the whole path instead of the matched prefix."""
    replacement, replaces_path = None, False
    for item in filters:
        path = (item.get("urlRewrite") or {}).get("path") or {}
        kind = path.get("type")
        if item.get("type") != "URLRewrite" or kind not in _REPLACEMENTS:
            raise UnsupportedRoute(
                "the only filters supported are URLRewrite of a path, RequestMirror and "
                "RequestHeaderModifier"
            )
        replacement, replaces_path = str(path[_REPLACEMENTS[kind]]), kind == "ReplaceFullPath"
    return replacement, replaces_path


def _mirrors(
    namespace: str, filters: Sequence[JsonObject], http2: Http2Ports
) -> tuple[Mirror, ...]:
    """A mirror without `percent` copies all requests; one of 0 percent is left out."""
    listed = [item.get("requestMirror") or {} for item in filters]
    if any("fraction" in item or "backendRef" not in item for item in listed):
        raise UnsupportedRoute(
            "a RequestMirror needs a backendRef, and takes percent, not fraction"
        )
    mirrors = (
        Mirror(
            _backend(namespace, item["backendRef"], http2).cluster, int(item.get("percent", 100))
        )
        for item in listed
    )
    return tuple(mirror for mirror in mirrors if mirror.percent)


def _timeout(text: str | None) -> str:
    """Parse a Gateway API duration such as `1m30s` into seconds for Envoy."""
    if text is None:
        return _DEFAULT_TIMEOUT
    total = sum(int(number) * _MILLISECONDS[unit] for number, unit in _DURATION.findall(text))
    return f"{total / 1000:g}s"


def endpoints_of(service: JsonObject, port: int, pods: Sequence[JsonObject]) -> list[Endpoint]:
    """Return the ready pods of a Service, at the real ports behind its port."""
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    listed = service["spec"].get("ports") or ()
    entry = next((item for item in listed if int(item["port"]) == port), None)
    if not selector or entry is None:
        return []
    target = entry.get("targetPort", entry["port"])
    chosen = [pod for pod in pods if _serves(pod, service["metadata"]["namespace"], selector)]
    ports = (_real_port(pod, target) for pod in chosen)
    return [Endpoint("127.0.0.1", port) for port in ports if port is not None]


def _serves(pod: JsonObject, namespace: str, selector: Mapping[str, str]) -> bool:
    metadata = pod["metadata"]
    return (
        metadata["namespace"] == namespace
        and selector.items() <= (metadata.get("labels") or {}).items()
        and not is_deleted(pod)
        and conditions.is_true(pod, "Ready")
    )


def _real_port(pod: JsonObject, target: int | str) -> int | None:
    number = target
    if not str(target).isdigit():
        declared = (
            item for container in pod["spec"]["containers"] for item in container.get("ports") or ()
        )
        number = next((x["containerPort"] for x in declared if x.get("name") == target), "")
    text = (pod["metadata"].get("annotations") or {}).get(f"{PORT_ANNOTATION}{number}")
    return int(text) if text else None


def condition(kind: str, status: str, *, reason: str, message: str = "") -> JsonObject:
    """The Gateway API requires a message, which may be empty."""
    return conditions.condition(kind, status, reason=reason) | {"message": message}


def status_of(
    route: JsonObject, parents: Sequence[JsonObject], problem: str | None, missing: Sequence[str]
) -> JsonObject:
    """Return `status.parents`, for the parents that this gateway controls."""
    if problem is None:
        accepted = condition("Accepted", conditions.TRUE, reason="Accepted")
    else:
        accepted = condition(
            "Accepted", conditions.FALSE, reason="UnsupportedValue", message=problem
        )
    if missing:
        resolved = condition(
            "ResolvedRefs",
            conditions.FALSE,
            reason="BackendNotFound",
            message=f"no such Service or port: {', '.join(missing)}",
        )
    else:
        resolved = condition("ResolvedRefs", conditions.TRUE, reason="ResolvedRefs")
    generation = route["metadata"]["generation"]
    desired = [{**item, "observedGeneration": generation} for item in (accepted, resolved)]
    before = (route.get("status") or {}).get("parents") or ()
    own = [item for item in before if item.get("controllerName") == CONTROLLER]
    others = [item for item in before if item.get("controllerName") != CONTROLLER]
    current = next((item.get("conditions") for item in own), None)
    merged = conditions.merge(current, desired)
    return {
        "parents": [
            *others,
            *(
                {"parentRef": parent, "controllerName": CONTROLLER, "conditions": merged}
                for parent in parents
            ),
        ]
    }
