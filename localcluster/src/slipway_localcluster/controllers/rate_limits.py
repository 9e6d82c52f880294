"""Reads BackendTrafficPolicies, for Envoy's own filters: local rate limits, and the size of bodies that are read
as a whole. Pure.

Tokens are counted in each process of Envoy and for each of its routes, as Envoy Gateway's proxies do.
"""

from dataclasses import dataclass

from kubernetes.utils import parse_quantity

from slipway_localcluster.controllers import scripts
from slipway_localcluster.errors import JsonObject

FILTER = "envoy.filters.http.local_ratelimit"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600, "Day": 86_400}
_UNLIMITED = 2**32 - 1
_ALWAYS = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A header that has just this value, or one that the regular expression matches as a whole; with neither, any
    value, each of which is counted by itself.
    """

    header: str
    exact: str | None = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class RateRule:
    """A limit of `requests` in `seconds` for requests that all matches hold for."""

    matches: tuple[HeaderMatch, ...]
    requests: int
    seconds: int


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rate limits of a route. With a `problem` nobody is served. `buffer_bytes` 0 passes bodies on as they come."""

    rules: tuple[RateRule, ...] = ()
    buffer_bytes: int = 0
    problem: str = ""


def read_policy(policy: JsonObject) -> RateLimits:
    spec = policy["spec"]
    local = (spec.get("rateLimit") or {}).get("local")
    buffer = int(parse_quantity((spec.get("requestBuffer") or {}).get("limit", 0)))
    if local is None and not buffer:
        return RateLimits(problem="only local rate limits and requestBuffer are supported")
    try:
        rules = tuple(_rule(item) for item in (local or {}).get("rules") or ())
        return RateLimits(rules, buffer)
    except KeyError:
        return RateLimits(problem="only rules for headers with values are supported")


def _rule(item: JsonObject) -> RateRule:
    """Raises KeyError for what is not supported."""
    headers = [header for selector in item["clientSelectors"] for header in selector["headers"]]
    limit = item["limit"]
    matches = tuple(_match(header) for header in headers)
    if not any(match.exact is not None or match.regex is not None for match in matches):
        # It would limit everyone who sends the header, known or not.
        raise KeyError("value")
    return RateRule(matches, int(limit["requests"]), _SECONDS[limit["unit"]])


def _match(header: JsonObject) -> HeaderMatch:
    kind = header.get("type", "Exact")
    if header.get("invert"):
        raise KeyError("invert")
    if kind == "Distinct":
        if "value" in header:
            raise KeyError("value")
        return HeaderMatch(header["name"])
    if kind == "RegularExpression":
        return HeaderMatch(header["name"], regex=header["value"])
    if kind != "Exact":
        raise KeyError("type")
    return HeaderMatch(header["name"], exact=header["value"])


def empty_filter() -> JsonObject:
    """Return the filter for the chain of all routes. A route's own configuration holds its limits."""
    return {
        "name": FILTER,
        "typed_config": {
            "@type": _TYPE,
            "stat_prefix": "limits",
            # Envoy Gateway's: buckets of values that are not known beforehand.
            "max_dynamic_descriptors": 10_000,
        },
    }


def route_filter(limits: RateLimits) -> JsonObject:
    """Return the filter of a route. Requests that no rule names are not limited."""
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
                    "entries": [
                        _entry(f"rule-{number}-match-{place}", match)
                        for place, match in enumerate(rule.matches)
                    ],
                    "token_bucket": _bucket(rule.requests, rule.seconds),
                }
                for number, rule in enumerate(limits.rules)
            ],
        }
    }


def _entry(key: str, match: HeaderMatch) -> JsonObject:
    """Return a descriptor's entry. An entry without a value gives each value a bucket of its own."""
    return {"key": key} if _is_any(match) else {"key": key, "value": "matched"}


def _selection(number: int, rule: RateRule) -> JsonObject:
    actions = [
        _action(f"rule-{number}-match-{place}", match) for place, match in enumerate(rule.matches)
    ]
    return {"actions": actions}


def _action(key: str, match: HeaderMatch) -> JsonObject:
    if _is_any(match):
        return {"request_headers": {"header_name": match.header, "descriptor_key": key}}
    value = (
        {"exact": match.exact}
        if match.exact is not None
        else {"safe_regex": {"regex": match.regex}}
    )
    headers = [{"name": match.header, "string_match": value}]
    matched = {"descriptor_key": key, "descriptor_value": "matched", "headers": headers}
    return {"header_value_match": matched}


def _is_any(match: HeaderMatch) -> bool:
    return match.exact is None and match.regex is None


def _bucket(requests: int, seconds: int) -> JsonObject:
    return {
        "max_tokens": requests,
        "tokens_per_fill": requests,
        "fill_interval": f"{seconds}s",
    }
