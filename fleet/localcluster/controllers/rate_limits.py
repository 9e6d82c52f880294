"""Reads BackendTrafficPolicies, for Envoy's own filters: local rate limits, and the size of bodies that are read
as a whole. Pure.

Tokens are counted in each process of Envoy and for each of its routes, as Envoy Gateway's proxies do.
"""

from dataclasses import dataclass

from kubernetes.utils import parse_quantity

from fleet.localcluster.controllers import scripts
from fleet.localcluster.errors import JsonObject

FILTER = "envoy.filters.http.local_ratelimit"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600, "Day": 86_400}
_UNLIMITED = 2**32 - 1
_ALWAYS = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}


@dataclass(frozen=True, slots=True)
class Rule:
    """`requests` in `seconds` for requests that have all `headers` with just these values."""

    headers: tuple[tuple[str, str], ...]
    requests: int
    seconds: int


@dataclass(frozen=True, slots=True)
class RateLimits:
    """With a `problem` nobody is served. `buffer_bytes` 0: bodies are passed on as they come."""

    rules: tuple[Rule, ...] = ()
    buffer_bytes: int = 0
    problem: str = ""


def of_policy(policy: JsonObject) -> RateLimits:
    spec = policy["spec"]
    local = (spec.get("rateLimit") or {}).get("local")
    buffer = int(parse_quantity((spec.get("requestBuffer") or {}).get("limit", 0)))
    if local is None and not buffer:
        return RateLimits(problem="only local rate limits and requestBuffer are supported")
    try:
        rules = tuple(_rule(item) for item in (local or {}).get("rules") or ())
        return RateLimits(rules, buffer)
    except KeyError:
        return RateLimits(problem="only rules for exact headers are supported")


def _rule(item: JsonObject) -> Rule:
    """Raises KeyError for what is not supported."""
    headers = [header for selector in item["clientSelectors"] for header in selector["headers"]]
    if any(header.get("type", "Exact") != "Exact" or header.get("invert") for header in headers):
        raise KeyError("type")
    limit = item["limit"]
    pairs = tuple((header["name"], header["value"]) for header in headers)
    return Rule(pairs, int(limit["requests"]), _SECONDS[limit["unit"]])


def empty_filter() -> JsonObject:
    """In the chain of all routes; a route's own configuration holds its limits."""
    return {"name": FILTER, "typed_config": {"@type": _TYPE, "stat_prefix": "limits"}}


def route_filter(limits: RateLimits) -> JsonObject:
    """Requests that no rule names are not limited."""
    buffer = scripts.buffer_of(limits.buffer_bytes) if limits.buffer_bytes else {}
    if not limits.rules:
        return buffer
    return buffer | {
        FILTER: {
            "@type": _TYPE,
            "stat_prefix": "limits",
            "filter_enabled": _ALWAYS,
            "filter_enforced": _ALWAYS,
            "token_bucket": _bucket(_UNLIMITED, 1),
            "always_consume_default_token_bucket": False,
            "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
            "rate_limits": [_selection(number, rule) for number, rule in enumerate(limits.rules)],
            "descriptors": [
                {
                    "entries": [{"key": f"rule-{number}", "value": "matched"}],
                    "token_bucket": _bucket(rule.requests, rule.seconds),
                }
                for number, rule in enumerate(limits.rules)
            ],
        }
    }


def _selection(number: int, rule: Rule) -> JsonObject:
    headers = [{"name": name, "string_match": {"exact": value}} for name, value in rule.headers]
    matched = {
        "descriptor_key": f"rule-{number}",
        "descriptor_value": "matched",
        "headers": headers,
    }
    return {"actions": [{"header_value_match": matched}]}


def _bucket(requests: int, seconds: int) -> JsonObject:
    return {
        "max_tokens": requests,
        "tokens_per_fill": requests,
        "fill_interval": f"{seconds}s",
    }
