"""Drift on the cluster is reported, and reverted or held for review, by policy."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.delivery.domain.drift import Drift
from deployments.delivery.services import drift_decisions
from deployments.models import ChangeRequest, Deployment
from deployments.states import DriftPolicy
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid
from tests.deployments.live_cluster import ISVC, PDB, ROUTE, Live, live, module_api

__all__ = ["live", "module_api"]
MORE = {"spec": {"predictor": {"maxReplicas": 3}}}
FIXED_AT_3 = {"spec": {"predictor": {"minReplicas": 3, "maxReplicas": 3}}}


def messages_of(deployment: Deployment, kind: str) -> list[str]:
    return list(deployment.events.filter(kind=kind).values_list("message", flat=True))


def most_replicas(live: Live, name: str) -> int:
    live_object = live.get(f"{ISVC}/{name}-r1")
    assert live_object is not None
    return int(live_object["spec"]["predictor"]["maxReplicas"])


def hold_drift(live: Live, deployment: Deployment) -> None:
    """A member requests it, and a lead approves."""
    for person in (live.world.member, live.world.lead):
        drift_decisions.set_policy(actor=person, deployment_id=deployment.pk, to=DriftPolicy.HOLD)


def pending_drift(live: Live, name: str, edit: dict[str, Any] = MORE) -> Deployment:
    """A deployment that holds drift for review, edited on the cluster."""
    deployment = live.deployed(name)
    hold_drift(live, deployment)
    live.edit(f"{ISVC}/{name}-r1", edit)
    return live.reconcile_now(deployment)


def test_drift_is_reverted_and_recorded_with_its_author(live: Live) -> None:
    deployment = live.deployed("one")
    live.edit(f"{ISVC}/one-r1", MORE)

    live.reconcile_now(deployment)

    assert most_replicas(live, "one") == 1
    assert messages_of(deployment, "drift") == [
        "kubectl-edit changed spec.predictor.maxReplicas of InferenceService one-r1 from 1 to 3; "
        "reverted to the approved manifests"
    ]
    live.reconcile_now(deployment)
    assert len(messages_of(deployment, "drift")) == 1
    assert Drift.from_json(deployment.drift).reverts == 1


def test_fields_that_others_add_are_kept(live: Live) -> None:
    deployment = live.deployed("two")
    live.edit(f"{ISVC}/two-r1", {"metadata": {"annotations": {"their/note": "x"}}})

    live.reconcile_now(deployment)

    live_object = live.get(f"{ISVC}/two-r1")
    assert live_object is not None
    assert live_object["metadata"]["annotations"]["their/note"] == "x"
    assert deployment.drift == {}


def test_pending_drift_stays_and_is_the_state_reason(live: Live) -> None:
    deployment = pending_drift(live, "three")

    assert most_replicas(live, "three") == 3
    assert "kubectl-edit changed spec.predictor.maxReplicas" in deployment.state_reason
    assert "held for review" in deployment.state_reason
    live.reconcile_now(deployment)
    assert len(messages_of(deployment, "drift held")) == 1


def test_a_decision_to_re_apply_reverts_once(live: Live) -> None:
    deployment = pending_drift(live, "four")

    drift_decisions.re_apply(actor=live.world.member, deployment_id=deployment.pk)
    live.reconcile_now(deployment)

    assert most_replicas(live, "four") == 1
    assert deployment.is_revert_requested is False
    assert "held for review" not in deployment.state_reason
    event = AuditEvent.objects.get(action="deployment.drift_re_applied")
    assert event.actor_name == "member"
    live.edit(f"{ISVC}/four-r1", MORE)
    live.reconcile_now(deployment)
    assert most_replicas(live, "four") == 3, "the policy still applies"


def test_adopting_drift_requests_a_change_and_approves_nothing(live: Live) -> None:
    deployment = pending_drift(live, "five", FIXED_AT_3)
    # Nothing loads here, so the first request does not finish.
    ChangeRequest.objects.filter(deployment=deployment).update(state="done")

    change = drift_decisions.adopt(actor=live.world.member, deployment_id=deployment.pk)

    assert (change.kind, change.state) == ("scale", "submitted")
    kept = {name: change.scale[name] for name in ("revision", "min_replicas", "max_replicas")}
    assert kept == {"revision": 1, "min_replicas": 3, "max_replicas": 3}
    assert change.scale["scaling"]["kind"] == "fixed"
    assert "kubectl-edit" in change.comment
    live.world.approved(change)
    live.reconcile_now(deployment)
    assert most_replicas(live, "five") == 3
    assert Drift.from_json(deployment.drift).outcome == "", "what was approved is what is there"


def test_a_range_without_an_autoscaler_is_not_adopted(live: Live) -> None:
    deployment = pending_drift(live, "unseen")
    ChangeRequest.objects.filter(deployment=deployment).update(state="done")

    assert not drift_decisions.view_of(deployment).is_adoptable
    with pytest.raises(
        Invalid, match=r"already runs 1 to 1 replicas\. Fixed at 1 replica: request"
    ):
        drift_decisions.adopt(actor=live.world.member, deployment_id=deployment.pk)

    assert ChangeRequest.objects.filter(deployment=deployment).count() == 1


def test_an_edit_without_a_field_in_the_spec_cannot_be_adopted(live: Live) -> None:
    deployment = live.deployed("six")
    hold_drift(live, deployment)
    live.edit(f"{ISVC}/six-r1", {"spec": {"predictor": {"serviceAccountName": "root"}}})
    live.reconcile_now(deployment)

    with pytest.raises(Invalid, match=r"has no field for them.*serviceAccountName"):
        drift_decisions.adopt(actor=live.world.member, deployment_id=deployment.pk)

    assert ChangeRequest.objects.filter(deployment=deployment).count() == 1


def test_a_viewer_decides_nothing(live: Live) -> None:
    deployment = pending_drift(live, "seven")
    audited = AuditEvent.objects.count()

    for choose in (drift_decisions.re_apply, drift_decisions.adopt):
        with pytest.raises(Forbidden):
            choose(actor=live.world.viewer, deployment_id=deployment.pk)

    deployment.refresh_from_db()
    assert deployment.is_revert_requested is False
    assert AuditEvent.objects.count() == audited


def test_without_pending_drift_there_is_nothing_to_decide(live: Live) -> None:
    deployment = live.deployed("eight")

    with pytest.raises(Conflict, match="held for review"):
        drift_decisions.re_apply(actor=live.world.member, deployment_id=deployment.pk)


def test_repeated_edits_of_a_tool_are_held_for_review(live: Live) -> None:
    deployment = live.deployed("nine")
    for _ in range(4):
        live.edit(f"{ISVC}/nine-r1", MORE, manager="vpa")
        live.world.clock.move(60)
        live.world.reconcile_now(deployment)

    assert len(messages_of(deployment, "drift")) == 3
    assert most_replicas(live, "nine") == 3
    assert "reverted 3 times: vpa changed" in deployment.state_reason


def test_deleted_objects_are_created_again_under_every_policy(live: Live) -> None:
    deployment = live.deployed("ten")
    hold_drift(live, deployment)
    for path in (f"{ISVC}/ten-r1", f"{PDB}/ten-r1", f"{ROUTE}/ten"):
        live.http.delete(path)

    live.reconcile_now(deployment)
    live.reconcile_now(deployment)

    assert all(live.get(p) for p in (f"{ISVC}/ten-r1", f"{PDB}/ten-r1", f"{ROUTE}/ten"))
    assert "InferenceService ten-r1 was deleted" in messages_of(deployment, "drift")[0]


def test_a_deleted_namespace_is_created_again_with_all_objects(live: Live) -> None:
    deployment = live.deployed("eleven")
    for path in (f"{ISVC}/eleven-r1", f"{PDB}/eleven-r1", f"{ROUTE}/eleven"):
        live.http.delete(path)
    live.remove_namespace("vision")

    live.reconcile_now(deployment)

    assert live.get("/api/v1/namespaces/vision") is not None
    assert live.get(f"{ISVC}/eleven-r1") is not None
    assert live.get(f"{ROUTE}/eleven") is not None


def test_orphans_are_pruned_and_objects_of_others_are_kept(live: Live) -> None:
    deployment = live.deployed("twelve")
    labels = {"slipway.dev/deployment-id": str(deployment.pk), "slipway.dev/revision": "1"}
    ours = {**labels, "app.kubernetes.io/managed-by": "slipway"}
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    for name, its in (("twelve-old", ours), ("twelve-theirs", labels)):
        body = {"metadata": {"name": name, "labels": its}, "spec": spec}
        assert live.http.post(PDB, json=body).status_code == 201

    live.reconcile_now(deployment)

    assert live.get(f"{PDB}/twelve-old") is None
    assert live.get(f"{PDB}/twelve-theirs") is not None
    assert messages_of(deployment, "pruned") == [
        "removed orphaned objects: PodDisruptionBudget twelve-old"
    ]
