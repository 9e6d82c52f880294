"""Envoy's configuration from routes and endpoints, as dicts: pure and sorted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slipway_localcluster.controllers import (
    caller_counts,
    rate_limits,
    token_counts,
)
from slipway_localcluster.controllers.api_keys import ApiKeys
from slipway_localcluster.controllers.caller_counts import CountedClients
from slipway_localcluster.controllers.credential_injection import Injection
from slipway_localcluster.controllers.provider_tokens import ProviderTokens
from slipway_localcluster.controllers.rate_limits import RateLimits
from slipway_localcluster.controllers.scripts import Script
from slipway_localcluster.errors import JsonObject

ROUTES_NAME = "slipway"
_TYPES = "type.googleapis.com/envoy"
_HTTP_OPTIONS = f"{_TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECT_TIMEOUT = "1s"
# Of the name of a cluster whose pods speak HTTP/2 without TLS, as gRPC does.
HTTP2_SUFFIX = "_h2c"


@dataclass(frozen=True, slots=True)
class Backend:
    """A Service port behind a route, with its traffic weight."""

    cluster: str
    weight: int


@dataclass(frozen=True, slots=True)
class Mirror:
    """A Service port that receives copies of `percent` of the requests; its responses are dropped."""

    cluster: str
    percent: int


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a route. None means that everyone is served, or not limited."""

    access: ApiKeys | ProviderTokens | None = None
    limits: RateLimits | None = None
    counted: CountedClients | None = None
    script: Script | None = None

    @property
    def has_problem(self) -> bool:
        policies = (self.access, self.limits, self.script)
        return any(item is not None and item.problem for item in policies)

    def filters(self) -> JsonObject:
        access = self.access.route_filter() if self.access else {}
        script = self.script.route_filter() if self.script else {}
        return access | script | (rate_limits.route_filter(self.limits) if self.limits else {})


OPEN = Policies()


@dataclass(frozen=True, slots=True)
class Route:
    """One match of an HTTPRoute rule; `rewrite` replaces the matched prefix, or the whole path."""

    path: str
    is_exact: bool
    headers: tuple[tuple[str, str], ...]
    rewrite: str | None
    timeout: str
    backends: tuple[Backend, ...]
    mirrors: tuple[Mirror, ...] = ()
    replaces_path: bool = False
    policies: Policies = OPEN
    removed_headers: tuple[str, ...] = ()
    injection: Injection | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of one ready pod."""

    host: str
    port: int


def watch(directory: str, folder: str, name: str) -> JsonObject:
    """Files are renamed into place, so Envoy has to watch the directory, not the file."""
    return {
        "resource_api_version": "V3",
        "path_config_source": {
            "path": f"{directory}/{folder}/{name}",
            "watched_directory": {"path": f"{directory}/{folder}"},
        },
    }


def address(host: str, port: int) -> JsonObject:
    return {"socket_address": {"address": host, "port_value": port}}


def clusters(
    names: Sequence[str], *, directory: str, others: Sequence[JsonObject] = ()
) -> JsonObject:
    """Return Envoy's clusters. `others` have addresses of their own."""
    return {"resources": [*(_cluster(name, directory) for name in sorted(names)), *others]}


def _cluster(name: str, directory: str) -> JsonObject:
    version = "http2" if name.endswith(HTTP2_SUFFIX) else "http"
    protocol = {
        "@type": _HTTP_OPTIONS,
        "explicit_http_config": {f"{version}_protocol_options": {}},
    }
    return {
        "@type": f"{_TYPES}.config.cluster.v3.Cluster",
        "name": name,
        "type": "EDS",
        "connect_timeout": _CONNECT_TIMEOUT,
        "lb_policy": "LEAST_REQUEST",
        "eds_cluster_config": {"eds_config": watch(directory, "endpoints", f"{name}.json")},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol
        },
    }


def endpoints(cluster: str, listed: Sequence[Endpoint]) -> JsonObject:
    ordered = sorted(listed, key=lambda item: (item.host, item.port))
    return {
        "resources": [
            {
                "@type": f"{_TYPES}.config.endpoint.v3.ClusterLoadAssignment",
                "cluster_name": cluster,
                "endpoints": [
                    {
                        "lb_endpoints": [
                            {"endpoint": {"address": address(item.host, item.port)}}
                            for item in ordered
                        ]
                    }
                ],
            }
        ]
    }


def routes(listed: Sequence[Route]) -> JsonObject:
    """Return the routes, the most specific match first, as the Gateway API requires."""
    ordered = sorted(
        listed,
        key=lambda item: (not item.is_exact, -len(item.path), -len(item.headers), item.path),
    )
    return {
        "resources": [
            {
                "@type": f"{_TYPES}.config.route.v3.RouteConfiguration",
                "name": ROUTES_NAME,
                "virtual_hosts": [
                    {
                        "name": "all",
                        "domains": ["*"],
                        "routes": [_route(item) for item in ordered],
                        "virtual_clusters": [
                            cluster
                            for item in ordered
                            if (counted := item.policies.counted)
                            for cluster in caller_counts.virtual_clusters(counted, item)
                        ],
                    }
                ],
            }
        ]
    }


def _match(route: Route) -> JsonObject:
    match: JsonObject = {}
    if route.is_exact:
        match["path"] = route.path
    elif route.path == "/":
        match["prefix"] = "/"
    else:
        match["path_separated_prefix"] = route.path
    if route.headers:
        match["headers"] = caller_counts.exact_headers(route.headers)
    return match


def _route(route: Route) -> JsonObject:
    match = _match(route)
    if route.policies.has_problem or (route.injection and route.injection.problem):
        # Envoy Gateway does the same: a policy that it cannot follow must not open the route.
        return {"match": match, "direct_response": {"status": 500}}
    filters = route.policies.filters()
    configured: JsonObject = {}
    if not any(item.weight for item in route.backends):
        body = {"inline_string": "the route has no backend with a weight\n"}
        if route.policies.script:
            # Envoy adds this filter only where the first route that matches has it.
            filters |= token_counts.route_filter(route)
        return {
            "match": match,
            "direct_response": {"status": 500, "body": body},
            **({"typed_per_filter_config": filters} if filters else {}),
        }
    if route.removed_headers:
        configured["request_headers_to_remove"] = list(route.removed_headers)
    if route.injection:
        configured["request_headers_to_add"] = route.injection.headers()
    if counted := route.policies.counted:
        filters |= token_counts.route_filter(route)
        configured["name"] = token_counts.route_name(counted)
    if filters:
        configured["typed_per_filter_config"] = filters
    return {"match": match, "route": _action(route), **configured}


def _action(route: Route) -> JsonObject:
    action: JsonObject = {
        "weighted_clusters": {
            "clusters": [{"name": item.cluster, "weight": item.weight} for item in route.backends]
        },
        "timeout": route.timeout,
        # Retry only requests that never reached a model: an inference must not run twice.
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream,reset-before-request",
            "num_retries": 3,
            "retry_back_off": {"base_interval": "0.05s", "max_interval": "0.5s"},
        },
    }
    if route.rewrite is not None:
        whole = {"pattern": {"regex": "^.*$"}, "substitution": route.rewrite}
        part = _rewrite(route.path, route.rewrite)
        action["regex_rewrite"] = whole if route.replaces_path else part
    if route.mirrors:
        action["request_mirror_policies"] = [_mirror(item) for item in route.mirrors]
    return action


def _mirror(mirror: Mirror) -> JsonObject:
    fraction = {"numerator": mirror.percent, "denominator": "HUNDRED"}
    return {"cluster": mirror.cluster, "runtime_fraction": {"default_value": fraction}}


def _rewrite(path: str, replacement: str) -> JsonObject:
    """`/a/b` -> `/`: `/a/b/v2` becomes `/v2` and `/a/b` becomes `/`."""
    prefix = re.escape(path.rstrip("/"))
    if replacement.rstrip("/"):
        pattern, substitution = f"^{prefix}", replacement.rstrip("/")
    else:
        pattern, substitution = f"^{prefix}/*", "/"
    return {"pattern": {"regex": pattern}, "substitution": substitution}
