"""Envoy's static configuration: listeners and the chain of filters. Pure."""

from collections.abc import Sequence

from slipway_localcluster.controllers import (
    api_keys,
    envoy_stats,
    istio_policies,
    provider_tokens,
    rate_limits,
    scripts,
    token_counts,
)
from slipway_localcluster.controllers.envoy_config import ROUTES_NAME, address, watch
from slipway_localcluster.errors import JsonObject

# The folder of filters that change with policies of the Gateway.
FILTERS = "filters"
# In their order: access is decided by what the tokens say.
DISCOVERED = {**istio_policies.FILTERS, provider_tokens.TOKENS: provider_tokens.JWT}
_TYPES = "type.googleapis.com/envoy"
_UNLIMITED = 2**32 - 1


def bootstrap(*, directory: str, gateway_port: int, admin_port: int, stats_port: int) -> JsonObject:
    """Return Envoy's static configuration. Everything that changes comes from files under `directory`."""
    routed = {
        "rds": {
            "route_config_name": ROUTES_NAME,
            "config_source": watch(directory, "routes", "routes.json"),
        }
    }
    return {
        "node": {"id": "slipway-gateway", "cluster": "slipway-gateway"},
        "admin": {"address": address("127.0.0.1", admin_port)},
        # Envoy Gateway's: a pattern may name as many callers as its length holds.
        "layered_runtime": {
            "layers": [
                {
                    "name": "patterns",
                    "static_layer": {"re2.max_program_size.error_level": _UNLIMITED},
                }
            ]
        },
        "dynamic_resources": {"cds_config": watch(directory, "clusters", "clusters.json")},
        "static_resources": {
            "listeners": [
                _listener("gateway", gateway_port, routed, _discovered(directory)),
                _listener("stats", stats_port, {"route_config": envoy_stats.route()}),
            ],
            "clusters": [envoy_stats.cluster(address("127.0.0.1", admin_port))],
        },
    }


def _discovered(directory: str) -> list[JsonObject]:
    """Return the filters whose whole configuration changes with policies of the Gateway."""
    return [
        {
            "name": name,
            "config_discovery": {
                "config_source": watch(directory, FILTERS, f"{name}.json"),
                "type_urls": [type_url],
            },
        }
        for name, type_url in DISCOVERED.items()
    ]


def _listener(
    name: str, port: int, routes: JsonObject, discovered: Sequence[JsonObject] = ()
) -> JsonObject:
    return {
        "name": name,
        "address": address("127.0.0.1", port),
        # Else a second Envoy may listen on the same port, and the kernel deals out the connections.
        "enable_reuse_port": False,
        "filter_chains": [{"filters": [_http_manager(name, routes, discovered)]}],
    }


def _http_manager(name: str, routes: JsonObject, discovered: Sequence[JsonObject]) -> JsonObject:
    network = f"{_TYPES}.extensions.filters.network.http_connection_manager.v3"
    router = f"{_TYPES}.extensions.filters.http.router.v3.Router"
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": f"{network}.HttpConnectionManager",
            "stat_prefix": name,
            "normalize_path": True,
            **routes,
            "access_log": [token_counts.counter()],
            "http_filters": [
                # In the order of Envoy Gateway.
                api_keys.disabled_filter(),
                *discovered,
                *scripts.disabled_filters(),
                provider_tokens.claims_filter(),
                token_counts.disabled_filter(),
                # After the keys: it counts by the caller that they name.
                rate_limits.empty_filter(),
                {"name": "envoy.filters.http.router", "typed_config": {"@type": router}},
            ],
        },
    }
