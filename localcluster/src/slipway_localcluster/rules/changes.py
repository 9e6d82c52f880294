"""Refuses changes of fields that are immutable once an object exists."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slipway_localcluster import kinds
from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import forbidden, invalid, report_required
from slipway_localcluster.rules.pod_defaults import complete_pod_spec
from slipway_localcluster.rules.workloads import is_selected

_FIXED = "field is immutable"
_JOB_FIELDS = ("selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
# Of the spec of a pod; and of each of its containers, the image.
_POD_MUTABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_FORBIDDEN_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`, "
    "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only "
    "additions to existing tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_CLAIM = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def find_change_faults(kind: kinds.Kind, live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    """Compare both as they are stored."""
    if kind in _CHANGES:
        yield from _CHANGES[kind](live, obj)


def _spec(obj: JsonObject) -> JsonObject:
    spec: JsonObject = obj.get("spec") or {}
    return spec


def _fixed(live: JsonObject, obj: JsonObject, *fields: str) -> Iterator[Cause]:
    for name in fields:
        if _spec(live).get(name) != _spec(obj).get(name):
            yield invalid(f"spec.{name}", _spec(obj).get(name), _FIXED)


def _selector_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    yield from _fixed(live, obj, "selector")


def _job_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    before, after = ({**item, "spec": _complete_job(_spec(item))} for item in (live, obj))
    yield from _fixed(before, after, *_JOB_FIELDS)
    spec = after["spec"]
    # An indexed job may grow and shrink, as long as all of its indexes run at once.
    is_elastic = spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    if before["spec"]["completions"] != spec["completions"] and not is_elastic:
        yield invalid("spec.completions", spec["completions"], _FIXED)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if selector is None:
        yield report_required("spec.selector")
    if not is_selected(selector, labels):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)


def _complete_job(spec: JsonObject) -> JsonObject:
    is_single = spec.get("completions") is None and spec.get("parallelism") is None
    template = spec.get("template") or {}
    return {
        **spec,
        "completionMode": spec.get("completionMode") or "NonIndexed",
        "completions": 1 if is_single else spec.get("completions"),
        "parallelism": 1 if spec.get("parallelism") is None else spec["parallelism"],
        "template": {**template, "spec": complete_pod_spec(template.get("spec") or {})},
    }


def _content_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    if live.get("immutable") is not True:
        return
    if obj.get("immutable") is not True:
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    for field in ("data", "binaryData"):
        if (live.get(field) or {}) != (obj.get(field) or {}):
            yield forbidden(field, "field is immutable when `immutable` is set")


def _secret_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    kind = obj.get("type") or "Opaque"
    if kind != (live.get("type") or "Opaque"):
        yield invalid("type", kind, _FIXED)
    yield from _content_faults(live, obj)


def _service_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    """A server gives each Service an address at once, if only here none is shown."""
    before, after = _spec(live), _spec(obj)
    address = after.get("clusterIP") or ""
    if address and address != before.get("clusterIP"):
        yield invalid("spec.clusterIPs[0]", address, "may not change once set")
    listed = after.get("clusterIPs") or []
    if listed and listed != before.get("clusterIPs"):
        yield invalid("spec.clusterIPs", listed, "may not change once set")


def _claim_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    before, after = ({"volumeMode": "Filesystem", **_spec(item)} for item in (live, obj))
    if (live.get("status") or {}).get("phase") == "Bound":
        before, after = ({**spec, "resources": None} for spec in (before, after))
    # A volume that was found is entered later, by a controller.
    if before.get("volumeName") is None:
        after = {**after, "volumeName": None}
        before = {**before, "volumeName": None}
    if before != after:
        yield forbidden("spec", _CLAIM)


def _quota_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    if sorted(_spec(live).get("scopes") or ()) != sorted(_spec(obj).get("scopes") or ()):
        yield invalid("spec.scopes", _spec(obj).get("scopes"), _FIXED)


def _pod_faults(live: JsonObject, obj: JsonObject) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        if len(_spec(live).get(field) or ()) != len(_spec(obj).get(field) or ()):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    if _fixed_of_pod(live) != _fixed_of_pod(obj):
        yield forbidden("spec", _FORBIDDEN_POD)


def _fixed_of_pod(pod: JsonObject) -> Any:
    spec = complete_pod_spec(_spec(pod))
    # Entered by the scheduler, where the scheduler binds by an update.
    for name in (*_POD_MUTABLE, "nodeName"):
        spec.pop(name, None)
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            container.pop("image", None)
    return spec


_CHANGES: Mapping[kinds.Kind, Callable[[JsonObject, JsonObject], Iterator[Cause]]] = {
    kinds.CLAIM: _claim_faults,
    kinds.CONFIG_MAP: _content_faults,
    kinds.DEPLOYMENT: _selector_faults,
    kinds.JOB: _job_faults,
    kinds.POD: _pod_faults,
    kinds.REPLICA_SET: _selector_faults,
    kinds.RESOURCE_QUOTA: _quota_faults,
    kinds.SECRET: _secret_faults,
    kinds.SERVICE: _service_faults,
}
