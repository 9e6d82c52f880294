"""Reads EnvoyExtensionPolicies with a script in Lua, and requests that are read as a whole for it: pure.

As at Envoy Gateway the body is collected behind the check of keys and tokens, the script runs behind that, and
what decides by claims and limits comes after it, by the route that the script had Envoy choose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slipway_localcluster.errors import JsonObject

SCRIPT_FILTER = "envoy.filters.http.lua"
BUFFER_FILTER = "envoy.filters.http.buffer"
_MOST_BYTES = 32 * 1024 * 1024
_TYPES = "type.googleapis.com/envoy.extensions.filters.http"


@dataclass(frozen=True, slots=True)
class Script:
    """The script of a route. With a `problem` nobody is served."""

    source: str = ""
    problem: str = ""

    def route_filter(self) -> JsonObject:
        script = {"inline_string": self.source}
        return {SCRIPT_FILTER: {"@type": f"{_TYPES}.lua.v3.LuaPerRoute", "source_code": script}}


def read_policy(policy: JsonObject) -> Script:
    listed: Sequence[JsonObject] = policy["spec"].get("lua") or ()
    if len(listed) != 1 or listed[0].get("type") != "Inline":
        return Script(problem="only one inline script is supported")
    return Script(source=listed[0]["inline"])


def buffer_of(limit: int) -> JsonObject:
    """Return a route's buffer, which refuses bodies above `limit` bytes with 413."""
    buffer = {"max_request_bytes": limit}
    return {BUFFER_FILTER: {"@type": f"{_TYPES}.buffer.v3.BufferPerRoute", "buffer": buffer}}


def disabled_filters() -> list[JsonObject]:
    """Return the filters for the chain of all routes. A route with a policy turns them on by its own configuration."""
    # Holds only where another filter has chosen a route without a limit in between.
    most = {"@type": f"{_TYPES}.buffer.v3.Buffer", "max_request_bytes": _MOST_BYTES}
    script = {"@type": f"{_TYPES}.lua.v3.Lua"}
    return [
        {"name": BUFFER_FILTER, "disabled": True, "typed_config": most},
        {"name": SCRIPT_FILTER, "disabled": True, "typed_config": script},
    ]
