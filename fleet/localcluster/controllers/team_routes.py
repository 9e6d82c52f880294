"""One address for the language models of a namespace: the model in the body chooses the route. Pure.

As with the body-based router of the Gateway API Inference Extension, an HTTPRoute names the model by a match
on the header X-Gateway-Model-Name. Here no header is read: a filter copies `model` of the body into the
request's metadata and has Envoy choose the route again. Three things must be so, or a key opens what it should not:

- The filter comes before that of the keys, which then reads the keys of the route that the model chose.
- Envoy adds a filter that is off by default when the first route that matches turns it on. That is the one of
  `added`, for the path without a model; so it turns all on that those of models need.
- A model without keys is not served here: nothing could turn the check off again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.localcluster.controllers import api_keys, token_counts
from fleet.localcluster.controllers.api_keys import ApiKeys
from fleet.localcluster.errors import JsonObject

HEADER = "x-gateway-model-name"
_TYPES = "type.googleapis.com/envoy"
_FILTERS = f"{_TYPES}.extensions.filters.http"
_MODEL_FILTER = "envoy.filters.http.json_to_metadata"
_LUA_FILTER = "envoy.filters.http.lua"
_METADATA = "slipway"
_NO_MODEL = "no-model"
# A conversation with images is large, and read as a whole before its model is known.
_MOST_BYTES = 32 * 1024 * 1024


class Policies(Protocol):
    @property
    def access(self) -> object: ...

    @property
    def has_problem(self) -> bool: ...


class TeamRoute(Protocol):
    """`model` is empty for all other routes."""

    @property
    def path(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def policies(self) -> Policies: ...


def model_filter() -> JsonObject:
    """Off: it reads the whole body. The routes of `added` turn it on."""
    rule = {
        "selectors": [{"key": "model"}],
        "on_present": {"metadata_namespace": _METADATA, "key": "model"},
    }
    config = {
        "@type": f"{_FILTERS}.json_to_metadata.v3.JsonToMetadata",
        "request_rules": {"rules": [rule]},
    }
    return {"name": _MODEL_FILTER, "disabled": True, "typed_config": config}


def answer_filter() -> JsonObject:
    """After the keys: it lists models by the caller that they name, and says that there is none."""
    return {
        "name": _LUA_FILTER,
        "disabled": True,
        "typed_config": {"@type": f"{_FILTERS}.lua.v3.Lua"},
    }


def match_of(model: str) -> JsonObject:
    value = {"string_match": {"exact": model}}
    return {"filter": _METADATA, "path": [{"key": "model"}], "value": value}


def is_served(route: TeamRoute) -> bool:
    """The team's address knows callers by their keys only."""
    is_keyed = isinstance(route.policies.access, ApiKeys) and not route.policies.has_problem
    return not route.model or is_keyed


def added(routes: Iterable[TeamRoute]) -> list[JsonObject]:
    """What answers where no model chose a route, and the lists of models. They come after the routes of
    models and before all others.
    """
    by_prefix: dict[str, list[TeamRoute]] = {}
    for route in routes:
        if route.model and is_served(route):
            by_prefix.setdefault(_prefix_of(route.path), []).append(route)
    return [
        answer
        for prefix, served in sorted(by_prefix.items())
        for answer in _of_team(prefix, served)
    ]


def _prefix_of(path: str) -> str:
    """`/vision/v1` of `/vision/v1/chat/completions`."""
    return "/".join(path.split("/")[:3])


def _of_team(prefix: str, routes: Sequence[TeamRoute]) -> list[JsonObject]:
    keys = api_keys.route_filter(_all_keys(routes))
    is_on = {"@type": f"{_TYPES}.config.route.v3.FilterConfig", "config": {}}
    paths = sorted({route.path for route in routes})
    return [
        *(
            {
                "match": {"path": path},
                # No such cluster: a direct response would ignore the limit of the body.
                "route": {"cluster": _NO_MODEL, "cluster_not_found_response_code": "NOT_FOUND"},
                "request_body_buffer_limit": _MOST_BYTES,
                "typed_per_filter_config": {
                    **keys,
                    **token_counts.route_filter(_Path(path)),
                    _MODEL_FILTER: is_on,
                    _LUA_FILTER: _script(_respond(404, _lua(_not_found(prefix)))),
                },
            }
            for path in paths
        ),
        {
            "match": {"path": f"{prefix}/models", "headers": [_GET]},
            "direct_response": {"status": 404},
            "typed_per_filter_config": {**keys, _LUA_FILTER: _list(prefix, routes)},
        },
    ]


@dataclass(frozen=True, slots=True)
class _Path:
    path: str


_GET: JsonObject = {"name": ":method", "string_match": {"exact": "GET"}}


def _access_of(route: TeamRoute) -> ApiKeys:
    access = route.policies.access
    return access if isinstance(access, ApiKeys) else ApiKeys()


def _all_keys(routes: Sequence[TeamRoute]) -> ApiKeys:
    first = _access_of(routes[0])
    credentials = {pair for route in routes for pair in _access_of(route).credentials}
    return ApiKeys(tuple(sorted(credentials)), first.headers, first.client_header, hides_key=True)


def _not_found(prefix: str) -> str:
    message = (
        "The body is no JSON object with a model of this address, or its content type is not "
        f"application/json. GET {prefix}/models lists the models of your key."
    )
    kind = {"type": "invalid_request_error", "code": "model_not_found"}
    return json.dumps({"error": {"message": message, **kind}})


def _list(prefix: str, routes: Sequence[TeamRoute]) -> JsonObject:
    """The models whose keys the caller's is among."""
    models: dict[str, set[str]] = {}
    for route in routes:
        for client, _ in _access_of(route).credentials:
            models.setdefault(client, set()).add(route.model)
    owner = prefix.split("/")[1]
    rows = ",".join(
        f"[{_lua(client)}]={_lua(_models_json(names, owner))}"
        for client, names in sorted(models.items())
    )
    header = _lua(_access_of(routes[0]).client_header)
    body = f"({{{rows}}})[handle:headers():get({header})] or {_lua(_models_json((), owner))}"
    return _script(_respond(200, body))


def _respond(status: int, body: str) -> str:
    """`body` is an expression of Lua."""
    headers = f'{{[":status"] = "{status}", ["content-type"] = "application/json"}}'
    return f"handle:respond({headers}, {body})"


def _script(statement: str) -> JsonObject:
    source = f"function envoy_on_request(handle)\n  {statement}\nend\n"
    return {"@type": f"{_FILTERS}.lua.v3.LuaPerRoute", "source_code": {"inline_string": source}}


def _models_json(names: Iterable[str], owner: str) -> str:
    rows = [
        {"id": name, "object": "model", "created": 0, "owned_by": owner} for name in sorted(names)
    ]
    return json.dumps({"object": "list", "data": rows})


def _lua(text: str) -> str:
    """A literal without a character that Lua could read in another way."""
    return '"' + "".join(f"\\{byte:03d}" for byte in text.encode()) + '"'
