"""Changes of objects: what is fixed once it exists, and what a request itself may ask for."""

from __future__ import annotations

from typing import Any

from tests.fidelity import metadata_rows
from tests.fidelity.change import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Changes,
    apply,
    create,
    delete,
    patch,
    replace,
    with_values,
)
from tests.fidelity.objects import (
    CLAIM,
    CONFIG,
    DEPLOYMENT,
    JOB,
    POD,
    QUOTA,
    ROUTE,
    SECRET,
    SERVICE,
)
from tests.fidelity.row import Json, Path, removed

ROWS = Changes()

_TEMPLATE: Path = ("spec", "template")
_LABELS: Path = (*_TEMPLATE, "metadata", "labels")
_OTHER = {"app": "other"}
_SELECTOR: Path = ("spec", "selector", "matchLabels")

for send, how in ((ROWS.applied, "applied"), (ROWS.replaced, "replaced")):
    send(f"{how}-deployment-selector", DEPLOYMENT, (_SELECTOR, _OTHER), (_LABELS, _OTHER))
    send(
        f"{how}-deployment-image",
        DEPLOYMENT,
        ((*_TEMPLATE, "spec", "containers", 0, "image"), "nginx:2"),
    )
    send(f"{how}-job-image", JOB, ((*_TEMPLATE, "spec", "containers", 0, "image"), "nginx:2"))
    send(f"{how}-job-template-label", JOB, (_LABELS, {"app": "fidelity", "more": "1"}))
    send(f"{how}-job-completions", JOB, (("spec", "completions"), 5))
    send(f"{how}-job-parallelism", JOB, (("spec", "parallelism"), 2))
    send(f"{how}-job-completion-mode", JOB, (("spec", "completionMode"), "Indexed"))
    send(f"{how}-job-suspend", JOB, (("spec", "suspend"), True))
    send(f"{how}-job-deadline", JOB, (("spec", "activeDeadlineSeconds"), 60))
    send(f"{how}-job-time-to-live", JOB, (("spec", "ttlSecondsAfterFinished"), 60))
    send(f"{how}-job-backoff-limit", JOB, (("spec", "backoffLimit"), 2))
ROWS.replaced("replaced-deployment-without-selector", DEPLOYMENT, removed("spec", "selector"))
ROWS.add(
    "patched-deployment-selector",
    DEPLOYMENT,
    patch(
        {
            "spec": {
                "selector": {"matchLabels": _OTHER},
                "template": {"metadata": {"labels": _OTHER}},
            }
        }
    ),
)
ROWS.add(
    "job-selector",
    JOB,
    patch(
        {
            "spec": {
                "selector": {"matchLabels": _OTHER},
                "template": {"metadata": {"labels": _OTHER}},
            }
        }
    ),
)
_INDEXED = with_values(JOB, [(("spec", "completionMode"), "Indexed"), (("spec", "parallelism"), 3)])
ROWS.applied("indexed-job-completions", _INDEXED, (("spec", "completions"), 5))
ROWS.applied(
    "elastic-indexed-job", _INDEXED, (("spec", "completions"), 5), (("spec", "parallelism"), 5)
)
_PER_INDEX = with_values(_INDEXED, [(("spec", "backoffLimitPerIndex"), 1)])
ROWS.applied("job-backoff-limit-per-index", _PER_INDEX, (("spec", "backoffLimitPerIndex"), 2))
_POLICY = {
    "rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
}
_GUARDED = with_values(JOB, [(("spec", "podFailurePolicy"), _POLICY)])
ROWS.applied("job-pod-failure-policy", _GUARDED, (("spec", "podFailurePolicy", "rules"), []))

_FIXED_CONFIG = with_values(CONFIG, [(("immutable",), True)])
_FIXED_SECRET = with_values(SECRET, [(("immutable",), True)])
for kind, fixed, mutable in (
    ("config-map", _FIXED_CONFIG, CONFIG),
    ("secret", _FIXED_SECRET, SECRET),
):
    ROWS.applied(f"fixed-{kind}-data", fixed, (("data", "key"), "b3RoZXI="))
    ROWS.applied(f"fixed-{kind}-more-data", fixed, (("data", "more"), "b3RoZXI="))
    ROWS.replaced(f"fixed-{kind}-no-longer", fixed, removed("immutable"))
    ROWS.applied(f"fixed-{kind}-false", fixed, (("immutable",), False))
    ROWS.applied(f"fixed-{kind}-label", fixed, (("metadata", "labels", "more"), "1"))
    ROWS.applied(
        f"{kind}-becomes-fixed", mutable, (("immutable",), True), (("data", "key"), "b3RoZXI=")
    )
ROWS.applied("fixed-config-map-binary", _FIXED_CONFIG, (("binaryData",), {"bytes": "b3RoZXI="}))
ROWS.applied("secret-type", SECRET, (("type",), "slipway.dev/keys"))
ROWS.replaced("replaced-secret-type", SECRET, (("type",), "slipway.dev/keys"))
ROWS.replaced("replaced-secret-without-type", SECRET, removed("type"))
ROWS.replaced("replaced-secret-data", SECRET, (("data", "key"), "b3RoZXI="))

ROWS.applied("service-cluster-ip-later", SERVICE, (("spec", "clusterIP"), "10.96.77.77"))
ROWS.applied("service-becomes-headless", SERVICE, (("spec", "clusterIP"), "None"))
_HEADLESS = with_values(SERVICE, [(("spec", "clusterIP"), "None")])
ROWS.applied("headless-service-gets-an-ip", _HEADLESS, (("spec", "clusterIP"), "10.96.77.77"))
ROWS.applied("headless-service-port", _HEADLESS, (("spec", "ports", 0, "port"), 81))
ROWS.replaced("replaced-service-without-cluster-ip", SERVICE, (("spec", "ports", 0, "port"), 81))
ROWS.applied("service-ips-of-two", SERVICE, (("spec", "clusterIPs"), ["10.96.77.77"]))
ROWS.applied("service-selector", SERVICE, (("spec", "selector"), _OTHER))

ROWS.applied("claim-mode-later", CLAIM, (("spec", "accessModes"), ["ReadWriteOnce"]))
ROWS.applied(
    "claim-larger-before-it-is-bound",
    CLAIM,
    (("spec", "resources", "requests", "storage"), "200Gi"),
)
ROWS.applied("claim-smaller", CLAIM, (("spec", "resources", "requests", "storage"), "50Gi"))
ROWS.applied("claim-class-later", CLAIM, (("spec", "storageClassName"), "fast"))
ROWS.applied("claim-label", CLAIM, (("metadata", "labels", "more"), "1"))
ROWS.applied("quota-scopes", QUOTA, (("spec", "scopes"), ["BestEffort"]))
ROWS.applied("quota-amount", QUOTA, (("spec", "hard", "pods"), "7"))

_CONTAINER: Path = ("spec", "containers", 0)
ROWS.applied("pod-image-later", POD, ((*_CONTAINER, "image"), "nginx:2"))
ROWS.applied("pod-command-later", POD, ((*_CONTAINER, "command"), ["true"]))
ROWS.applied("pod-environment-later", POD, ((*_CONTAINER, "env"), [{"name": "A", "value": "1"}]))
ROWS.applied(
    "pod-more-containers",
    POD,
    (("spec", "containers"), [*POD["spec"]["containers"], {"name": "b", "image": "b"}]),
)
ROWS.applied("pod-service-account-later", POD, (("spec", "serviceAccountName"), "other"))
ROWS.applied("pod-grace-later", POD, (("spec", "terminationGracePeriodSeconds"), 5))
ROWS.applied("pod-deadline-later", POD, (("spec", "activeDeadlineSeconds"), 5))
ROWS.applied(
    "pod-toleration-later", POD, (("spec", "tolerations"), [{"key": "a", "operator": "Exists"}])
)
ROWS.applied("pod-label-later", POD, (("metadata", "labels"), {"app": "fidelity"}))

# Requests.
ROWS.add("apply-without-a-manager", CONFIG, apply(CONFIG, {"force": "true"}))
ROWS.alone("apply-of-a-new-one-without-a-manager", CONFIG, apply(CONFIG, {}))
ROWS.add("apply-with-an-empty-manager", CONFIG, apply(CONFIG, {"fieldManager": ""}))
ROWS.add("apply-with-a-long-manager", CONFIG, apply(CONFIG, {"fieldManager": "m" * 129}))
ROWS.add(
    "apply-with-a-manager-of-control-characters", CONFIG, apply(CONFIG, {"fieldManager": "a\nb"})
)
ROWS.add("force-of-a-merge-patch", CONFIG, patch({}, force="true"))
ROWS.add("patch-with-a-long-manager", CONFIG, patch({}, fieldManager="m" * 129))
ROWS.alone("create-with-a-long-manager", CONFIG, create(CONFIG, fieldManager="m" * 129))
ROWS.alone("create-as-an-unknown-dry-run", CONFIG, create(CONFIG, dryRun="Some"))
ROWS.alone("create-with-an-unknown-validation", CONFIG, create(CONFIG, fieldValidation="Loose"))
ROWS.add("create-again", CONFIG, create(CONFIG))
ROWS.add("create-again-as-a-dry-run", CONFIG, create(CONFIG, dryRun="All"))
ROWS.alone("replace-what-is-not-there", CONFIG, replace(CONFIG))
ROWS.alone("replace-a-route-that-is-not-there", ROUTE, replace(ROUTE))
ROWS.alone("patch-what-is-not-there", CONFIG, patch({}))
ROWS.alone("delete-what-is-not-there", CONFIG, delete())
ROWS.add("merge-patch-of-another-name", CONFIG, patch({"metadata": {"name": "other"}}))
ROWS.add("merge-patch-of-another-namespace", CONFIG, patch({"metadata": {"namespace": "other"}}))
ROWS.add("merge-patch-of-another-kind", CONFIG, patch({"kind": "Secret"}))
ROWS.add("merge-patch-of-a-list", CONFIG, patch([], MERGE))
ROWS.add("strategic-patch-of-a-route", ROUTE, patch({}, STRATEGIC))
ROWS.add("patch-of-an-unknown-type", CONFIG, patch({}, "application/x-patch"))
_TESTED = [{"op": "test", "path": "/data/key", "value": "no"}]
ROWS.add("json-patch-whose-test-fails", CONFIG, patch(_TESTED, JSON_PATCH))
ROWS.add(
    "json-patch-of-no-place", CONFIG, patch([{"op": "remove", "path": "/data/no"}], JSON_PATCH)
)
ROWS.add("json-patch-of-an-object", CONFIG, patch({}, JSON_PATCH))

# Preconditions.
_NO_UID = "00000000-0000-0000-0000-000000000000"


def _only_if(**conditions: str) -> Json:
    return {"preconditions": conditions}


ROWS.add("delete-of-another-uid", CONFIG, delete(_only_if(uid=_NO_UID)))
ROWS.add("delete-of-another-version", CONFIG, delete(_only_if(resourceVersion="1")))
ROWS.add("delete-of-a-route-of-another-version", ROUTE, delete(_only_if(resourceVersion="1")))
ROWS.add("delete-as-a-dry-run-of-another-uid", CONFIG, delete(_only_if(uid=_NO_UID), dryRun="All"))
ROWS.add("delete-with-no-conditions", CONFIG, delete({"preconditions": {}}))
ROWS.add("delete-with-an-unknown-propagation", CONFIG, delete(propagationPolicy="Upwards"))
ROWS.add(
    "delete-with-two-propagations",
    CONFIG,
    delete({"propagationPolicy": "Orphan", "orphanDependents": True}),
)
ROWS.add("delete-with-a-grace-below-zero", CONFIG, delete({"gracePeriodSeconds": -5}))
ROWS.add("delete-as-an-unknown-dry-run", CONFIG, delete(dryRun="Some"))
for kind, manifest in (("config-map", CONFIG), ("route", ROUTE)):
    ROWS.replaced(
        f"replace-{kind}-of-another-version", manifest, (("metadata", "resourceVersion"), "1")
    )
    ROWS.replaced(f"replace-{kind}-of-no-version", manifest)
    ROWS.replaced(f"replace-{kind}-of-another-uid", manifest, (("metadata", "uid"), _NO_UID))
    ROWS.applied(
        f"apply-{kind}-of-another-version", manifest, (("metadata", "resourceVersion"), "1")
    )
    ROWS.applied(f"apply-{kind}-of-another-uid", manifest, (("metadata", "uid"), _NO_UID))
    ROWS.add(
        f"patch-{kind}-of-another-version",
        manifest,
        patch({"metadata": {"resourceVersion": "1"}}),
    )
    ROWS.add(f"patch-{kind}-of-another-uid", manifest, patch({"metadata": {"uid": _NO_UID}}))
    ROWS.alone(
        f"create-{kind}-with-a-version",
        manifest,
        create(with_values(manifest, [(("metadata", "resourceVersion"), "1")])),
    )

# Status.
_READY: Json = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_PARENT: Json = {
    "parentRef": {"name": "slipway"},
    "controllerName": "slipway.dev/gateway",
    "conditions": [_READY],
}


def _status(name: str, status: Any, **also: Any) -> None:
    body = {"status": status, **also}
    ROWS.add(name, ROUTE, patch(body, subresource="status"))


_status("route-status", {"parents": [_PARENT]})
_status("route-status-without-parents", {})
_status("route-status-null-parents", {"parents": None})
_status("route-status-of-33-parents", {"parents": [_PARENT] * 33})
_status("route-status-without-controller", {"parents": [{**_PARENT, "controllerName": None}]})
_status("route-status-of-a-bad-controller", {"parents": [{**_PARENT, "controllerName": "none"}]})
_status("route-status-without-parent-name", {"parents": [{**_PARENT, "parentRef": {}}]})
_status(
    "route-status-of-a-bad-condition",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "status": "Yes"}]}]},
)
_status(
    "route-status-of-a-bad-reason",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "reason": "no reason"}]}]},
)
_status(
    "route-status-without-reason",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "reason": None}]}]},
)
_status(
    "route-status-of-a-bad-time",
    {"parents": [{**_PARENT, "conditions": [{**_READY, "lastTransitionTime": "today"}]}]},
)
_status(
    "route-status-of-two-equal-conditions",
    {"parents": [{**_PARENT, "conditions": [_READY, _READY]}]},
)
_status("route-status-as-text", "ready")
_status("route-status-with-a-bad-spec", {"parents": [_PARENT]}, spec={"rules": {}})
ROWS.add("route-status-in-the-route", ROUTE, patch({"status": {"parents": "none"}}))
ROWS.add(
    "route-status-applied",
    ROUTE,
    apply({**ROUTE, "status": {"parents": [_PARENT]}}, subresource="status"),
)
ROWS.add(
    "route-status-replaced-of-no-version",
    ROUTE,
    replace({**ROUTE, "status": {"parents": [_PARENT]}}, subresource="status"),
)
ROWS.add("config-map-status", CONFIG, patch({"status": {}}, subresource="status"))
ROWS.add(
    "deployment-scale-below-zero",
    DEPLOYMENT,
    patch({"spec": {"replicas": -1}}, subresource="scale"),
)
ROWS.add(
    "deployment-scale-as-text",
    DEPLOYMENT,
    patch({"spec": {"replicas": "two"}}, subresource="scale"),
)
ROWS.add(
    "deployment-status-below-zero",
    DEPLOYMENT,
    patch({"status": {"replicas": -1}}, subresource="status"),
)

metadata_rows.add_to(ROWS)
