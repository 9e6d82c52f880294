"""An object on the cluster beside its manifest: its state, what is marked as drifted, and who wrote it last."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from deployments.delivery.domain import edits, object_comparison
from deployments.delivery.domain.edits import Edit
from deployments.delivery.domain.object_comparison import (
    ApplyStatus,
    LastChange,
    ObjectComparison,
    ObjectState,
    compare_object,
)

CURRENT = ApplyStatus()
BEHIND = ApplyStatus(is_current=False)
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "detector-r1",
        "namespace": "vision",
        "annotations": {"slipway.dev/manifest-digest": "d1"},
        "labels": {"slipway.dev/deployment-id": "7"},
    },
    "spec": {
        "replicas": 2,
        "strategy": "Recreate",
        "template": {
            "containers": [
                {"name": "server", "image": "triton:1", "args": ["--a", "--b"]},
                {"name": "puller", "image": "puller:1"},
            ]
        },
    },
}
OWN: dict[str, Any] = {
    "manager": "slipway",
    "time": "2026-11-29T08:00:00Z",
    "fieldsV1": {
        "f:spec": {
            "f:replicas": {},
            "f:strategy": {},
            "f:template": {
                "f:containers": {'k:{"name":"server"}': {}, 'k:{"name":"puller"}': {}},
            },
        }
    },
}


def live_with(*managers: dict[str, Any]) -> dict[str, Any]:
    live = copy.deepcopy(MANIFEST)
    live["metadata"]["managedFields"] = list(managers)
    live["spec"]["minReadySeconds"] = 10
    live["status"] = {"readyReplicas": 2}
    return live


def marked(compared: ObjectComparison) -> list[tuple[str, str]]:
    return [(line.kind, line.text.strip()) for line in compared.diff if line.kind != "same"]


def test_fields_that_the_cluster_fills_in_are_in_sync() -> None:
    assert compare_object(MANIFEST, live_with(OWN), CURRENT) == ObjectComparison(
        ObjectState.IN_SYNC,
        last_change=LastChange("slipway", datetime(2026, 11, 29, 8, tzinfo=UTC)),
    )


def test_only_fields_that_others_changed_are_marked() -> None:
    theirs = {
        "manager": "kubectl-edit",
        "time": "2026-11-29T09:30:00Z",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    own = copy.deepcopy(OWN)
    del own["fieldsV1"]["f:spec"]["f:replicas"]
    live = live_with(own, theirs)
    live["spec"]["replicas"] = 5
    # A webhook rewrote it within the portal's own request.
    live["spec"]["strategy"] = "RollingUpdate"

    compared = compare_object(MANIFEST, live, CURRENT)

    assert compared.state == ObjectState.DRIFTED
    assert compared.edits == [
        Edit(
            *("Deployment", "detector-r1", "spec.replicas", "2", "5"),
            by="kubectl-edit",
            at="2026-11-29T09:30:00Z",
        )
    ]
    assert marked(compared) == [
        ("gap", "⋯"),
        ("removed", "replicas: 2"),
        ("added", "replicas: 5"),
    ]
    assert compared.last_change == LastChange(
        "kubectl-edit", datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
    )
    assert list(compared.edits) == edits.find_edits(MANIFEST, live), "as drift detection counts"


def test_items_of_lists_are_marked_by_their_names() -> None:
    live = live_with()
    server, puller = live["spec"]["template"]["containers"]
    server["image"], server["args"] = "triton:2", ["--a", "--c", "--b"]
    server["terminationMessagePath"] = "/dev/null"
    live["spec"]["template"]["containers"] = [puller, server, {"name": "istio", "image": "x"}]

    compared = compare_object(MANIFEST, live, CURRENT)

    assert [edit.path for edit in compared.edits] == [
        "spec.template.containers[server].image",
        "spec.template.containers[server].args",
    ]
    assert marked(compared) == [
        ("gap", "⋯"),
        ("added", "- --c"),
        ("removed", "image: triton:1"),
        ("added", "image: triton:2"),
    ]


def test_what_was_removed_is_marked() -> None:
    live = live_with()
    del live["spec"]["strategy"]
    del live["spec"]["template"]["containers"][1]

    compared = compare_object(MANIFEST, live, CURRENT)

    assert [(edit.path, edit.live) for edit in compared.edits] == [
        ("spec.strategy", ""),
        ("spec.template.containers[puller]", ""),
    ]
    assert marked(compared) == [
        ("gap", "⋯"),
        ("removed", "strategy: Recreate"),
        ("gap", "⋯"),
        ("removed", "- image: puller:1"),
        ("removed", "name: puller"),
    ]


def test_another_digest_means_that_the_push_is_still_to_come() -> None:
    live = live_with()
    live["metadata"]["annotations"]["slipway.dev/manifest-digest"] = "d0"
    live["spec"]["replicas"] = 1

    compared = compare_object(MANIFEST, live, CURRENT)

    assert (compared.state, compared.edits) == (ObjectState.NOT_APPLIED, ())
    assert ("removed", "replicas: 2") in marked(compared)


@pytest.mark.parametrize(
    ("managers", "status", "state"),
    [
        ([OWN], BEHIND, ObjectState.NOT_APPLIED),
        ([OWN], CURRENT, ObjectState.IN_SYNC),
        ([], BEHIND, ObjectState.NOT_APPLIED),
        ([], CURRENT, ObjectState.DRIFTED),
        ([{**OWN, "manager": "argocd-controller"}], BEHIND, ObjectState.DRIFTED),
        (
            [{**OWN, "manager": "argocd-controller"}],
            ApplyStatus(is_current=False, is_direct=False),
            ObjectState.NOT_APPLIED,
        ),
    ],
)
def test_what_is_still_to_be_written_is_no_drift(
    managers: list[dict[str, Any]], status: ApplyStatus, state: ObjectState
) -> None:
    live = live_with(*managers)
    live["spec"]["replicas"] = 1

    assert compare_object(MANIFEST, live, status).state == state


def test_an_absent_object_is_missing_unless_it_should_be_absent() -> None:
    shared = copy.deepcopy(MANIFEST)
    del shared["metadata"]["labels"]
    off = ApplyStatus(is_removed=True)

    assert compare_object(MANIFEST, None, CURRENT) == ObjectComparison(
        ObjectState.MISSING, [Edit("Deployment", "detector-r1", "", "", "")]
    )
    assert compare_object(MANIFEST, None, BEHIND).state == ObjectState.NOT_APPLIED
    assert compare_object(MANIFEST, None, off).state == ObjectState.STOPPED
    assert compare_object(MANIFEST, live_with(), off).state == ObjectState.BEING_REMOVED
    assert compare_object(shared, None, off).state == ObjectState.MISSING
    assert compare_object(shared, live_with(), off).state == ObjectState.IN_SYNC


def test_writes_of_the_status_are_no_change() -> None:
    status: dict[str, Any] = {"f:status": {"f:readyReplicas": {}}}
    live = live_with(
        {"manager": "kubelet", "time": "2026-11-29T11:00:00Z", "fieldsV1": status},
        {**OWN, "manager": "hpa", "time": "2026-11-29T10:00:00Z", "subresource": "scale"},
        OWN,
    )

    change = object_comparison.find_last_change(live)

    assert change == LastChange("slipway", datetime(2026, 11, 29, 8, tzinfo=UTC))
    assert change.is_own
    assert object_comparison.find_last_change(live_with()) is None


def test_a_cluster_that_does_not_answer_leaves_what_the_last_check_found() -> None:
    field = Edit("Deployment", "detector-r1", "spec.replicas", "2", "5")
    gone = Edit("Deployment", "detector-r1", "", "", "")
    other = Edit("Deployment", "detector-r2", "spec.replicas", "2", "5")

    assert object_comparison.recall(MANIFEST, [other, field]) == ObjectComparison(
        ObjectState.DRIFTED, [field]
    )
    assert object_comparison.recall(MANIFEST, [gone]).state == ObjectState.MISSING
    assert object_comparison.recall(MANIFEST, [other]) == ObjectComparison(ObjectState.UNKNOWN)
