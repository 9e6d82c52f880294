"""Keys of callers: made, rotated, expired and revoked by leads; the cluster holds what is current."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from typing import Any

import pytest

from deployments.callers.selectors import keys as key_views
from deployments.callers.services import keys
from deployments.callers.services.issuing import KeyLimits, NewKey
from deployments.callers.services.keys import KeyDraft
from deployments.models import CallerKey, Consumer, Deployment, Revision
from deployments.spec.domain.serving_spec import Network
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.kube.domain.errors import NotAllowed
from fleet.models import Cluster
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]
_SECRET = ("Secret", "vision", "detector-callers")
_POLICY = ("SecurityPolicy", "vision", "detector")
_ROUTE = ("HTTPRoute", "vision", "detector")


def keyed(world: World) -> Deployment:
    """A deployment that takes keys, on a cluster whose gateway checks them."""
    return world.play("keyed", lambda: _keyed(world))


def _keyed(world: World) -> Deployment:
    features = {"caller-keys": Feature(is_there=True)}
    row = Cluster.objects.get(pk=world.cluster_id)
    found = Capabilities.from_json(row.capabilities)
    row.capabilities = Capabilities(features={**found.features, **features}).to_json()
    row.save()
    return world.serving(network=Network(access="keys"))


def make(world: World, deployment: Deployment, name: str = "billing", **more: Any) -> NewKey:
    named = ("requests_per_minute", "tokens_per_minute", "tokens_per_day")
    limits = KeyLimits(**{key: more.pop(key) for key in named if key in more})
    draft = KeyDraft(name=name, contact="ana@example.org", limits=limits, **more)
    made = keys.create(actor=world.lead, deployment_id=deployment.pk, draft=draft)
    world.work()
    return made


def at_gateway(world: World) -> dict[str, str]:
    data = world.cluster.objects[_SECRET]["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def test_a_key_reaches_the_cluster_is_stored_hashed_and_sealed_and_ends_when_revoked(
    world: World,
) -> None:
    deployment = keyed(world)
    before = at_gateway(world)

    made = make(world, deployment)

    row = CallerKey.objects.get()
    held = at_gateway(world)
    assert before == {}
    assert held == {f"billing.{row.pk}": made.plain}
    assert made.plain.startswith("slc_")
    assert len(made.plain) == 47
    assert row.sha256 == hashlib.sha256(made.plain.encode()).hexdigest()
    stored = [str(value) for value in CallerKey.objects.values().get().values()]
    assert not [text for text in stored if made.plain in text]

    world.clock.move(60)
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=row.pk)
    world.work()

    row.refresh_from_db()
    assert at_gateway(world) == {}
    assert (row.is_revoked, row.sealed, row.ended_at) == (True, "", world.clock.at)
    events = AuditEvent.objects.filter(action__startswith="caller_key").order_by("id")
    assert [(event.action, event.actor_name, event.object_label) for event in events] == [
        ("caller_key.created", "lead", "billing for vision/detector"),
        ("caller_key.revoked", "lead", "billing for vision/detector"),
    ]
    written = str([(event.before, event.after) for event in events])
    assert made.plain not in written
    assert row.prefix in written
    assert made.plain not in str(list(deployment.events.values_list("message", flat=True)))


def test_a_rotated_key_works_until_its_overlap_ends(world: World) -> None:
    deployment = keyed(world)
    old = make(world, deployment)

    new = keys.rotate(
        actor=world.lead, deployment_id=deployment.pk, key_id=old.row.pk, overlap_hours=2
    )
    world.work()
    both = at_gateway(world)
    states = [view.state for view in key_views.list_of(deployment)]
    world.clock.move(2 * 3600)
    ended = keys.end_expired()
    world.work()

    assert sorted(both.values()) == sorted([old.plain, new.plain])
    assert states == ["active", "ending"]
    assert ended == 1
    assert at_gateway(world) == {f"billing.{new.row.pk}": new.plain}
    assert [view.state for view in key_views.list_of(deployment)] == ["active", "expired"]
    assert not keys.has_work()
    assert keys.end_expired() == 0
    assert Consumer.objects.count() == 1
    expired = AuditEvent.objects.get(action="caller_key.expired")
    assert expired.actor_name == "slipway"


def test_an_expired_key_ends_without_anybody(world: World) -> None:
    deployment = keyed(world)
    make(world, deployment, days=1)
    world.clock.move(timedelta(days=1).total_seconds() - 1)
    assert not keys.has_work()
    assert keys.end_expired() == 0

    world.clock.move(1)
    assert keys.has_work()
    ended = keys.end_expired()
    world.work()

    assert ended == 1
    assert at_gateway(world) == {}


def test_an_open_address_has_no_policy_and_keeps_the_keys_for_later(world: World) -> None:
    deployment = world.serving()

    make(world, deployment)

    assert _SECRET not in world.cluster.objects
    assert _POLICY not in world.cluster.objects
    assert "annotations" not in world.cluster.objects[_ROUTE]["metadata"]


def test_the_policy_is_on_the_cluster_before_the_route_and_without_it_there_is_no_route(
    world: World,
) -> None:
    world.cluster.refuse["SecurityPolicy"] = NotAllowed("may not write SecurityPolicies")
    deployment = keyed(world)
    refused = _ROUTE in world.cluster.objects
    del world.cluster.refuse["SecurityPolicy"]

    world.clock.move(120)
    world.reconcile_now(deployment)

    applied = [kind for call, kind, *_ in world.cluster.calls if call == "apply"]
    assert not refused
    assert applied.index("SecurityPolicy") < applied.index("HTTPRoute")
    policy = world.cluster.objects[_POLICY]["spec"]
    assert policy["targetRefs"] == [
        {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "detector"}
    ]
    assert policy["apiKeyAuth"]["credentialRefs"] == [{"name": "detector-callers"}]


def test_a_cluster_that_lost_everything_gets_the_same_keys_again(world: World) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    world.cluster.objects.clear()

    world.clock.move(300)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)

    assert at_gateway(world) == {f"billing.{made.row.pk}": made.plain}


def test_an_address_that_opens_again_loses_policy_and_keys(world: World) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    revision = Revision.objects.get()
    spec = {**revision.spec, "network": {**revision.spec["network"], "access": "open"}}
    Revision.objects.update(spec=spec)
    Deployment.objects.update(desired_generation=99)

    world.reconcile_now(deployment)
    # The pass after the one that wrote the objects looks for those that nothing names.
    world.reconcile_now(deployment)

    route = world.cluster.objects[_ROUTE]["metadata"]
    assert "annotations" not in route
    assert {_SECRET, _POLICY}.isdisjoint(world.cluster.objects)
    made.row.refresh_from_db()
    assert made.row.ended_at is None


def test_what_others_did_to_policy_or_secret_is_reverted(world: World) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    expected = {f"billing.{made.row.pk}": made.plain}

    del world.cluster.objects[_POLICY]
    world.clock.move(300)
    world.reconcile_now(deployment)
    restored = _POLICY in world.cluster.objects
    # The portal may not read Secrets: the gateway tells that it is gone.
    del world.cluster.objects[_SECRET]
    refused = {"conditions": [{"type": "Accepted", "status": "False"}]}
    world.cluster.objects[_POLICY]["status"] = {"ancestors": [refused]}
    world.clock.move(300)
    world.reconcile_now(deployment)

    assert restored
    assert at_gateway(world) == expected


def test_a_key_that_the_secret_key_no_longer_opens_is_left_out(world: World) -> None:
    deployment = keyed(world)
    old = make(world, deployment, "old")
    CallerKey.objects.update(sealed="made with another secret key")

    new = make(world, deployment, "new")

    assert at_gateway(world) == {f"new.{new.row.pk}": new.plain}
    assert old.row.pk != new.row.pk


def test_retiring_removes_policy_and_keys(world: World) -> None:
    deployment = keyed(world)
    make(world, deployment)
    Deployment.objects.filter(pk=deployment.pk).update(is_retiring=True, desired_generation=99)

    world.reconcile_now(deployment)
    world.reconcile_now(deployment)

    kinds = {kind for kind, *_ in world.cluster.objects}
    assert kinds.isdisjoint({"Secret", "SecurityPolicy", "HTTPRoute"})
    with pytest.raises(Conflict):
        make(world, deployment, "other")


@pytest.mark.parametrize(
    ("who", "error"), [("member", Forbidden), ("viewer", Forbidden), ("stranger", NotFound)]
)
def test_only_leads_and_admins_manage_keys(
    world: World, who: str, error: type[DomainError]
) -> None:
    deployment = world.serving()
    made = make(world, deployment)
    actor = getattr(world, who)
    here: dict[str, Any] = {"actor": actor, "deployment_id": deployment.pk}

    with pytest.raises(error):
        keys.create(**here, draft=KeyDraft(name="other", contact="x"))
    with pytest.raises(error):
        keys.rotate(**here, key_id=made.row.pk)
    with pytest.raises(error):
        keys.revoke(**here, key_id=made.row.pk)

    row = CallerKey.objects.get()
    assert (row.ended_at, row.rotated_at) == (None, None)
    assert Consumer.objects.get().name == "billing"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Billing"}, "lowercase"),
        ({"name": "a.b"}, "lowercase"),
        ({"name": ""}, "lowercase"),
        ({"contact": " "}, "contact"),
        ({"days": 0}, "1 to 365"),
        ({"days": 366}, "1 to 365"),
    ],
)
def test_bad_input_is_refused_with_its_fix(
    world: World, changed: dict[str, Any], message: str
) -> None:
    deployment = world.serving()
    draft = KeyDraft(**{"name": "billing", "contact": "x", **changed})

    with pytest.raises(Invalid, match=message):
        keys.create(actor=world.lead, deployment_id=deployment.pk, draft=draft)

    assert (CallerKey.objects.count(), Consumer.objects.count()) == (0, 0)


def test_a_key_ends_once_and_is_rotated_once(world: World) -> None:
    deployment = world.serving()
    made = make(world, deployment)
    here: dict[str, Any] = {
        "actor": world.lead,
        "deployment_id": deployment.pk,
        "key_id": made.row.pk,
    }
    keys.rotate(**here)

    with pytest.raises(Conflict, match="already rotated"):
        keys.rotate(**here)
    keys.revoke(**here)
    with pytest.raises(Conflict, match="already ended"):
        keys.revoke(**here)
    with pytest.raises(Conflict, match="already ended"):
        keys.rotate(**here)
    with pytest.raises(NotFound):
        keys.revoke(**{**here, "key_id": 999})

    assert CallerKey.objects.count() == 2


def test_keys_are_refused_where_the_gateway_is_not_known_to_check_them(world: World) -> None:
    with pytest.raises(Invalid, match=r"network\.access"):
        world.serving(network=Network(access="keys"))

    assert Deployment.objects.count() == 0
