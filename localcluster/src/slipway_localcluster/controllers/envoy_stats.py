"""The listener of Envoy's metrics, as Envoy Gateway's proxies offer them: pure."""

from slipway_localcluster.errors import JsonObject

PATH = "/stats/prometheus"
_CLUSTER = "stats"


def route() -> JsonObject:
    """Return a route to metrics and nothing else of the administration, as Envoy Gateway's proxies offer them."""
    only_get = {"name": ":method", "string_match": {"exact": "GET"}}
    route = {
        "match": {"path": PATH, "headers": [only_get]},
        "route": {"cluster": _CLUSTER},
    }
    return {"virtual_hosts": [{"name": "stats", "domains": ["*"], "routes": [route]}]}


def cluster(administration: JsonObject) -> JsonObject:
    endpoint = {"endpoint": {"address": administration}}
    return {
        "name": _CLUSTER,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": _CLUSTER,
            "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
