"""Counts the tokens that each caller of a language model uses, from what its answers say: pure.

A script reads `usage.total_tokens` of each answer as it passes, also of a stream, and keeps nothing of it. A
stream that states no usage counts one token for each of its events, and none for its prompt. Whoever leaves in
the middle has used what passed until then. The counter's labels are those of docs/callers.md.
"""

from __future__ import annotations

import re
from typing import Protocol

from slipway_localcluster.controllers.caller_counts import CountedClients
from slipway_localcluster.errors import JsonObject

FILTER = "slipway.tokens"
_TYPES = "type.googleapis.com/envoy"
_LUA = f"{_TYPES}.extensions.filters.http.lua.v3"
# Answers of these paths of OpenAI's API have a usage.
_PATH = re.compile(r"/v1/(chat/completions|completions|responses|embeddings)$")
_SCRIPT = r"""
-- More than the longest number with its name: it may lie on two chunks.
local OVERLAP = 64

function envoy_on_request(handle)
  -- An answer that is compressed could not be read.
  handle:headers():remove("accept-encoding")
end

function envoy_on_response(handle)
  local kind = handle:headers():get("content-type") or ""
  local is_stream = kind:find("text/event-stream", 1, true) ~= nil
  local rest, line_end, events, total = "", "\n", 0, nil
  for chunk in handle:bodyChunks() do
    local text = chunk:getBytes(0, chunk:length())
    local window = rest .. text
    for found in window:gmatch('"total_tokens"%s*:%s*(%d+)[,}%s]') do
      total = tonumber(found)
    end
    rest = window:sub(-OVERLAP)
    if is_stream then
      local lines = line_end .. text
      for _ in lines:gmatch("\ndata: ?{") do
        events = events + 1
      end
      line_end = lines:sub(-8)
    end
    local used = total or events
    if used > 0 then
      handle:streamInfo():dynamicMetadata():set("slipway.tokens", "total", used)
    end
  end
end
"""


class PathMatch(Protocol):
    @property
    def path(self) -> str: ...


def disabled_filter() -> JsonObject:
    """Return the filter for the chain of all routes. Routes of language models turn it on."""
    return {"name": FILTER, "disabled": True, "typed_config": {"@type": f"{_LUA}.Lua"}}


def route_filter(match: PathMatch) -> JsonObject:
    """Return the filter of a route. Empty for routes whose responses contain no token counts."""
    if not _PATH.search(match.path):
        return {}
    script = {"@type": f"{_LUA}.LuaPerRoute", "source_code": {"inline_string": _SCRIPT}}
    return {FILTER: script}


def route_name(counted: CountedClients) -> str:
    """Return the route's name as Envoy Gateway writes it to its access log."""
    return f"httproute/{'/'.join(counted.route)}/rule/0"


def counter() -> JsonObject:
    """Return the access log that adds up what the script found, by caller and route."""
    is_counted = {
        "filter": FILTER,
        "path": [{"key": "total"}],
        "value": {"double_match": {"range": {"start": 1, "end": 1e15}}},
    }
    config = {
        "@type": f"{_TYPES}.extensions.access_loggers.stats.v3.Config",
        "stat_prefix": "slipway",
        "counters": [
            {
                "stat": {
                    "name": "caller_tokens",
                    "tags": [
                        {"name": "caller", "value_format": "%REQ(SLIPWAY-CALLER)%"},
                        {"name": "route", "value_format": "%ROUTE_NAME%"},
                    ],
                },
                "value_format": f"%DYNAMIC_METADATA({FILTER}:total)%",
            }
        ],
    }
    return {
        "name": "envoy.access_loggers.stats",
        "filter": {"metadata_filter": {"matcher": is_counted, "match_if_key_not_found": False}},
        "typed_config": config,
    }
