"""Discovery documents of the API server: groups, resources, version."""

from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import EVENT, KINDS, POD, Kind

# Kinds that are evaluated and never stored.
_REVIEWS = (
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
)
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
EVENTS_GROUP = "events.k8s.io"

VERSION: JsonObject = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0+slipway.local",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "slipway/local",
}


def versions_by_group() -> dict[str, list[str]]:
    """Return the served versions of each named group, without the core group."""
    served: dict[str, list[str]] = {}
    for kind in KINDS:
        versions = served.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    served.pop("")
    for group in (EVENTS_GROUP, *(review[0] for review in _REVIEWS)):
        served[group] = ["v1"]
    return served


def core_versions() -> JsonObject:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list() -> JsonObject:
    groups = [_group(name, versions) for name, versions in sorted(versions_by_group().items())]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(name: str) -> JsonObject:
    versions = versions_by_group().get(name)
    if versions is None:
        raise NotFound("the server could not find the requested resource")
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: list[str]) -> JsonObject:
    # Beta after alpha in the name, but first in preference.
    ordered = sorted(versions, key=lambda version: ("alpha" in version, "beta" in version))
    listed = [{"groupVersion": f"{name}/{item}", "version": item} for item in ordered]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(group_name: str, version: str) -> JsonObject:
    resources: list[JsonObject] = []
    for kind in KINDS:
        if (kind.group, kind.version) == (group_name, version):
            resources += _resources(kind)
    if (group_name, version) == (EVENTS_GROUP, "v1"):
        resources += _resources(EVENT)
    for name, kind_name, plural in _REVIEWS:
        if (name, "v1") == (group_name, version):
            resources.append(_resource(plural, kind_name, ["create"], is_namespaced=False))
    if not resources:
        raise NotFound("the server could not find the requested resource")
    group_version = f"{group_name}/{version}" if group_name else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }


def _resources(kind: Kind) -> list[JsonObject]:
    main = _resource(kind.plural, kind.kind, _VERBS, is_namespaced=kind.namespaced)
    main["singularName"] = kind.singular
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    resources = [main]
    update = ["get", "patch", "update"]
    if kind.has_status:
        resources.append(_sub(kind, "status", kind.kind, update))
    if kind.has_scale:
        scale = _sub(kind, "scale", "Scale", update)
        resources.append(scale | {"group": "autoscaling", "version": "v1"})
    if kind is POD:
        resources.append(_sub(kind, "log", "Pod", ["get"]))
        resources.append(_sub(kind, "proxy", "PodProxyOptions", ["get", "create"]))
        eviction = _sub(kind, "eviction", "Eviction", ["create"])
        resources.append(eviction | {"group": "policy", "version": "v1"})
    return resources


def _sub(kind: Kind, name: str, kind_name: str, verbs: list[str]) -> JsonObject:
    return _resource(f"{kind.plural}/{name}", kind_name, verbs, is_namespaced=kind.namespaced)


def _resource(name: str, kind_name: str, verbs: list[str], *, is_namespaced: bool) -> JsonObject:
    return {
        "name": name,
        "singularName": "",
        "namespaced": is_namespaced,
        "kind": kind_name,
        "verbs": verbs,
    }
