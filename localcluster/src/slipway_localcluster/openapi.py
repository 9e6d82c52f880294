"""The part of OpenAPI v3 that kubectl needs: the kinds, and that the server validates fields.

No schemas are published, so `kubectl explain` shows nothing. Strategic merge is left out of the
patch types on purpose: kubectl then takes the merge keys from its own types.
"""

from slipway_localcluster.discovery import versions_by_group
from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import KINDS, Kind

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]
_PATCH_TYPES = ("application/apply-patch+yaml", "application/merge-patch+json")


def index() -> JsonObject:
    places = ["api/v1"]
    for group, versions in sorted(versions_by_group().items()):
        places += [f"apis/{group}/{version}" for version in versions]
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}


def document(place: str) -> JsonObject:
    if place not in index()["paths"]:
        raise NotFound("the server could not find the requested resource")
    group_version = place.removeprefix("apis/").removeprefix("api/")
    kinds = [kind for kind in KINDS if kind.api_version == group_version]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Slipway local cluster", "version": "v1.37.0"},
        "paths": {f"/{place}/{_path(kind)}": _operations(kind) for kind in kinds},
        "components": {"schemas": {}},
    }


def legacy_document() -> JsonObject:
    """Return an OpenAPI v2 document without paths. kubectl uses it only where v3 is missing."""
    info = {"title": "Slipway local cluster", "version": "v1.37.0"}
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}


def _path(kind: Kind) -> str:
    return (
        f"namespaces/{{namespace}}/{kind.plural}/{{name}}"
        if kind.namespaced
        else (f"{kind.plural}/{{name}}")
    )


def _operations(kind: Kind) -> JsonObject:
    identity = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    answer = {"200": {"description": "OK"}}
    common: JsonObject = {"x-kubernetes-group-version-kind": identity, "responses": answer}
    content: JsonObject = {name: {"schema": {"type": "object"}} for name in _PATCH_TYPES}
    return {
        "get": common | {"x-kubernetes-action": "get"},
        "put": common | {"x-kubernetes-action": "put", "parameters": _PARAMETERS},
        "patch": common
        | {
            "x-kubernetes-action": "patch",
            "parameters": _PARAMETERS,
            "requestBody": {"content": content, "required": True},
        },
    }
