"""What somebody else does on the cluster between an approval and the worker, and who may stop an action."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from fleet.actions.domain import node_class_settings, pool_settings
from fleet.actions.domain.evidence import Evidence
from fleet.actions.selectors import actions
from fleet.actions.services import class_requests, decisions, requests
from fleet.kube.domain.errors import ObjectConflict
from fleet.models import Cluster, FleetAction, Node
from portal.accounts.models import Team, User
from portal.accounts.scopes import Scope, TokenGrant
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, Forbidden
from tests.fleet.actions.conftest import Hands
from tests.fleet.actions.node_pools import WANTED, live_pool
from tests.fleet.actions.test_node_classes import NEW
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def creation(lead: User, cluster: Cluster) -> FleetAction:
    return requests.request_pool_creation(
        actor=lead, cluster_id=cluster.pk, name="fresh", settings=WANTED
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"gpu_limit": None},
        {"gpu_limit": 800},
        {"instance_types": ("p5.48xlarge",)},
        {"taints": ()},
        {"node_class": "other"},
    ],
)
def test_a_pool_that_somebody_else_made_under_the_name_is_not_reported_as_done(
    cluster: Cluster,
    catalogue: None,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    changed: dict[str, Any],
) -> None:
    action = creation(lead, cluster)
    hands.approve(action, admin)
    theirs = pool_settings.manifest("fresh", replace(WANTED, **changed))
    kube.put(copy.deepcopy(theirs))
    hands.sweep(4)
    action.refresh_from_db()

    assert (action.state, action.state_reason) == (
        "failed",
        "Someone else created node pool fresh with other settings. It was not touched.",
    )
    assert kube.objects["NodePool", "", "fresh"]["spec"] == theirs["spec"]
    assert ("NodePool", False) not in kube.applied


@pytest.mark.parametrize(
    ("changed", "state"),
    [({}, "done"), ({"role": "Other"}, "failed"), ({"subnet_tags": ("a=b",)}, "failed")],
)
def test_a_node_class_of_the_name_is_the_requested_one_or_is_not_touched(
    cluster: Cluster,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    changed: dict[str, Any],
    state: str,
) -> None:
    action = class_requests.request_class_creation(
        actor=lead, cluster_id=cluster.pk, name="fresh", settings=NEW
    )
    hands.approve(action, admin)
    theirs = node_class_settings.manifest("fresh", replace(NEW, **changed))
    theirs["spec"]["metadataOptions"] = {"httpTokens": "required"}
    kube.put(copy.deepcopy(theirs))
    hands.sweep(4)
    action.refresh_from_db()

    assert action.state == state
    assert kube.objects["EC2NodeClass", "", "fresh"]["spec"] == theirs["spec"]
    assert ("EC2NodeClass", False) not in kube.applied


def test_a_pool_that_was_made_as_requested_is_done(
    cluster: Cluster, catalogue: None, lead: User, admin: User, kube: FakeKube, hands: Hands
) -> None:
    """Also where a worker died after it, and the cluster filled in what was not said."""
    action = creation(lead, cluster)
    hands.approve(action, admin)
    mine = pool_settings.manifest("fresh", WANTED)
    mine["spec"]["disruption"]["budgets"] = [{"nodes": "10%"}]
    kube.put(mine)
    hands.sweep(4)
    action.refresh_from_db()

    assert action.state == "done"


def test_an_edit_between_the_look_and_the_patch_is_not_overwritten(
    cluster: Cluster,
    catalogue: None,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube.put(live_pool())
    pool = kube.objects["NodePool", "", "gpu"]
    pool["metadata"]["resourceVersion"] = "7"
    action = requests.request_pool_change(
        actor=lead, cluster_id=cluster.pk, name="gpu", settings=WANTED
    )
    hands.approve(action, admin)
    hands.sweep(1)
    patched = kube.merge_patch

    def edited_first(kind: Any, namespace: Any, name: str, patch: Any, **options: Any) -> Any:
        """Somebody adds a requirement, which the patch does not know of."""
        if pool["metadata"]["resourceVersion"] == "7":
            pool["spec"]["template"]["spec"]["requirements"].append(
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
            )
            pool["metadata"] |= {"resourceVersion": "8", "generation": 4}
        if patch["metadata"]["resourceVersion"] != pool["metadata"]["resourceVersion"]:
            raise ObjectConflict("the object has been modified")
        return patched(kind, namespace, name, patch, **options)

    monkeypatch.setattr(kube, "merge_patch", edited_first)
    hands.sweep(4, seconds=120)
    action.refresh_from_db()

    keys = [row["key"] for row in pool["spec"]["template"]["spec"]["requirements"]]
    assert "topology.kubernetes.io/zone" in keys
    assert (action.state, kube.patched) == ("failed", [])
    assert action.state_reason.startswith("Someone changed the node pool after the approval.")


def test_an_approval_does_not_count_for_what_another_approver_found_meanwhile(
    cluster: Cluster,
    catalogue: None,
    lead: User,
    admin: User,
    kube: FakeKube,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one opens the request after an edit, so that its row has new evidence."""
    kube.put(live_pool())
    action = requests.request_pool_change(
        actor=lead, cluster_id=cluster.pk, name="gpu", settings=WANTED
    )
    shown, observe = action.evidence_hash, requests.observe

    def observed_then_edited(one: FleetAction) -> Evidence:
        seen = observe(one)
        FleetAction.objects.filter(pk=one.pk).update(evidence_hash="other")
        return seen

    monkeypatch.setattr(requests, "observe", observed_then_edited)
    with pytest.raises(Conflict) as raised:
        decisions.approve(actor=admin, action_id=action.pk, evidence_hash=shown)

    action.refresh_from_db()
    assert raised.value.code == "evidence_changed"
    assert (action.state, action.decided_by) == ("submitted", None)
    assert not AuditEvent.objects.filter(action="fleet_action.approved").exists()


def test_a_token_of_one_team_stops_nothing(
    node: Node, lead: User, admin: User, vision: Team, kube: FakeKube, hands: Hands
) -> None:
    waiting = requests.request_drain(actor=lead, node_id=node.pk)
    scopes = frozenset({Scope.READ, Scope.REQUEST, Scope.DECIDE})
    for person in (lead, admin):
        person.grant = TokenGrant(1, "ci", scopes, vision.pk, clock.now())
        trail = AuditEvent.objects.count()
        with pytest.raises(Forbidden) as withdrawn:
            decisions.withdraw(actor=person, action_id=waiting.pk)

        assert withdrawn.value.code == "whole_fleet_required"
        assert not actions.may_withdraw(person, waiting)
        assert AuditEvent.objects.count() == trail
        person.grant = None
    hands.approve(waiting, admin)
    hands.sweep(2)
    waiting.refresh_from_db()
    admin.grant = TokenGrant(1, "ci", scopes, vision.pk, clock.now())
    with pytest.raises(Forbidden) as canceled:
        decisions.cancel(actor=admin, action_id=waiting.pk)

    assert canceled.value.code == "whole_fleet_required"
    waiting.refresh_from_db()
    assert waiting.state == "applying"
    admin.grant = TokenGrant(1, "ci", scopes, None, clock.now())
    assert decisions.cancel(actor=admin, action_id=waiting.pk).state == "canceling"
