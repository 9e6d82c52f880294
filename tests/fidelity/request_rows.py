"""What a request itself may ask for, and on which state of an object."""

from __future__ import annotations

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
    CONFIG,
    ROUTE,
)
from tests.fidelity.row import Json

ROWS = Changes()

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
