"""The Lua script by which Envoy Gateway chooses the model of a team's address: pure.

It runs behind the check of keys, which names the caller `deployment.client` in a header of its own, and decides
itself whether that key opens the model. Envoy Gateway runs it once, with stand-ins for Envoy's objects, before it
accepts a policy: only what those have may be called on the way to the first refusal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deployments.access.domain.headers import CALLER_HEADER
from deployments.manifests.domain import route_paths

# What the check of keys of the team's address writes, and nothing else may.
ACCEPTED_HEADER: Final = "slipway-team-caller"
# A body of brackets alone would keep a thread of Envoy busy for seconds.
_MOST_PARTS: Final = 1_000_000

_SCRIPT: Final = r"""
local function respond(handle, status, body)
  handle:respond({[":status"] = status, ["content-type"] = "application/json"}, body)
end

local function refuse(handle, status, code, message)
  local kind = status == "401" and "authentication_error" or "invalid_request_error"
  local error = '{"error": {"message": "' .. message .. '", "type": "' .. kind .. '", "code": "' .. code .. '"}}'
  respond(handle, status, error)
end

-- Where the string ends that begins at `start`.
local function end_of_string(text, start)
  local at = start
  while true do
    at = text:find('"', at + 1, true)
    if not at then
      return nil
    end
    local slashes = 0
    while text:byte(at - 1 - slashes) == 92 do
      slashes = slashes + 1
    end
    if slashes % 2 == 0 then
      return at
    end
  end
end

-- `model` of a JSON object; of several the last, as Python reads it. False for one that is no text.
local function model_of(text)
  local at, depth, parts, model = 0, 0, 0, nil
  while true do
    at = text:find('[%[%]{}"]', at + 1)
    if not at then
      return nil, "The body is not a JSON object."
    end
    parts = parts + 1
    if parts > MOST_PARTS then
      return nil, "The body has too many parts to find its model."
    end
    local byte = text:byte(at)
    if depth == 0 and byte ~= 123 then
      return nil, "The body is not a JSON object."
    elseif byte == 123 or byte == 91 then
      depth = depth + 1
    elseif byte == 125 or byte == 93 then
      depth = depth - 1
      if depth == 0 then
        return model
      end
    else
      local last = end_of_string(text, at)
      if not last then
        return nil, "The body is not a JSON object."
      end
      if depth == 1 and last - at == 6 and text:sub(at, last) == '"model"' then
        local value = text:match("^%s*:%s*()", last + 1)
        if value then
          model, last = false, value - 1
          if text:byte(value) == 34 then
            last = end_of_string(text, value)
            if not last then
              return nil, "The body is not a JSON object."
            end
            model = text:sub(value + 1, last - 1):gsub("\\/", "/")
          end
        end
      end
      at = last
    end
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local accepted = headers:get(ACCEPTED) or ""
  local deployment, client = accepted:match("^([^.]+)%.(.+)$")
  headers:remove(ACCEPTED)
  if not deployment or not LISTS[deployment] then
    refuse(handle, "401", "invalid_api_key", "Send a key of one of the models of this address.")
    return
  end
  if (headers:get(":path") or ""):match("^[^?]*") == LIST_PATH then
    respond(handle, "200", LISTS[deployment])
    return
  end
  local body = handle:body()
  local model, problem = nil, "The body is empty."
  if body and body:length() > 0 then
    model, problem = model_of(body:getBytes(0, body:length()))
  end
  if not model then
    local found = problem or "The body has no model."
    refuse(handle, "400", "model_required", found .. " GET " .. LIST_PATH .. " lists the models of your key.")
    return
  end
  local owner = MODELS[model]
  if not owner then
    refuse(handle, "404", "model_not_found", "No such model here. GET " .. LIST_PATH .. " lists the models of your key.")
    return
  end
  if owner ~= deployment then
    refuse(handle, "401", "invalid_api_key", "The key is for another model. GET " .. LIST_PATH .. " lists its models.")
    return
  end
  headers = handle:headers()
  headers:replace(CALLER, client)
  -- A changed header has Envoy choose the route again.
  headers:replace(MODEL, model)
end
"""


@dataclass(frozen=True, slots=True)
class RoutedDeployment:
    """A deployment that serves at the team's address, and what requests name it by."""

    deployment: str
    models: tuple[str, ...]


def script(namespace: str, members: Sequence[RoutedDeployment]) -> str:
    """Return the script. It is the same text for the same members, whoever has which key, and new when one
    joins or leaves.
    """
    list_path = f"{route_paths.team_prefix(namespace)}/models"
    models = {model: one.deployment for one in members for model in one.models}
    lists = {one.deployment: _listed(namespace, one.models) for one in members}
    constants = {
        "ACCEPTED": _text(ACCEPTED_HEADER),
        "CALLER": _text(CALLER_HEADER),
        "MODEL": _text(route_paths.MODEL_HEADER.lower()),
        "LIST_PATH": _text(list_path),
        "MOST_PARTS": str(_MOST_PARTS),
        "MODELS": _table(models),
        "LISTS": _table(lists),
    }
    lines = [f"local {name} = {value}" for name, value in constants.items()]
    return "\n".join(lines) + "\n" + _SCRIPT


def _listed(namespace: str, models: Sequence[str]) -> str:
    rows = [
        {"id": model, "object": "model", "created": 0, "owned_by": namespace}
        for model in sorted(models)
    ]
    return json.dumps({"object": "list", "data": rows})


def _table(values: dict[str, str]) -> str:
    rows = ", ".join(f"[{_text(key)}] = {_text(value)}" for key, value in sorted(values.items()))
    return f"{{{rows}}}"


def _text(text: str) -> str:
    """Return a literal without a character that Lua could read in another way."""
    safe = "".join(
        char if char.isascii() and (char.isalnum() or char in " -_./:,{}[]'") else _escaped(char)
        for char in text
    )
    return f'"{safe}"'


def _escaped(char: str) -> str:
    return "".join(f"\\{byte:03d}" for byte in char.encode())
