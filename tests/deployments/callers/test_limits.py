"""Limits of callers' keys: set by leads, kept by rotation, enforced by the gateway."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.callers.services import keys, limits
from deployments.callers.services.issuing import KeyLimits
from deployments.models import CallerKey, Deployment
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.deployments.callers.test_keys import keyed, make
from tests.deployments.callers.test_page_and_rest import signed_in
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_LIMITS = ("BackendTrafficPolicy", "vision", "detector")
_ROUTE = ("HTTPRoute", "vision", "detector")
_TAB = "/vision/deployments/detector/callers"


def set_limit(*, requests_per_minute: int | None, **key: Any) -> CallerKey:
    limited = KeyLimits(requests_per_minute=requests_per_minute)
    return limits.set_limits(limits=limited, **key)


def limit(world: World, deployment: Deployment, key: CallerKey, most: int | None) -> CallerKey:
    row = set_limit(
        actor=world.lead, deployment_id=deployment.pk, key_id=key.pk, requests_per_minute=most
    )
    world.work()
    # The pass after the one that wrote the objects looks for those that nothing names.
    world.reconcile_now(deployment)
    return row


def at_gateway(world: World) -> dict[str, int] | None:
    """Requests a minute by caller; None without a policy."""
    policy = world.cluster.objects.get(_LIMITS)
    if policy is None:
        return None
    found = {}
    for rule in policy["spec"]["rateLimit"]["local"]["rules"]:
        ((header,),) = [selector["headers"] for selector in rule["clientSelectors"]]
        assert (header["name"], header["type"]) == ("slipway-caller", "Exact")
        assert rule["limit"]["unit"] == "Minute"
        found[header["value"]] = rule["limit"]["requests"]
    return found


def test_a_limit_is_at_the_gateway_with_the_key_moves_with_rotation_and_goes_with_it(
    world: World,
) -> None:
    deployment = keyed(world)
    make(world, deployment, "free")
    without = at_gateway(world)

    old = make(world, deployment, requests_per_minute=60)
    first = at_gateway(world)
    new = keys.rotate(actor=world.lead, deployment_id=deployment.pk, key_id=old.row.pk)
    world.work()
    both = at_gateway(world)
    limit(world, deployment, new.row, 5)
    changed = at_gateway(world)
    for row in (old.row, new.row):
        keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=row.pk)
    world.work()
    world.reconcile_now(deployment)

    assert without is None
    assert first == {f"billing.{old.row.pk}": 60}
    assert both == {f"billing.{old.row.pk}": 60, f"billing.{new.row.pk}": 60}
    assert changed == {f"billing.{old.row.pk}": 60, f"billing.{new.row.pk}": 5}
    assert at_gateway(world) is None


def test_lifting_the_limit_removes_the_policy_and_the_platforms_own_one_stays_in_force(
    world: World,
) -> None:
    deployment = keyed(world)
    key = make(world, deployment).row
    limit(world, deployment, key, 100)
    merged = world.cluster.objects[_LIMITS]["spec"]["mergeType"]

    limit(world, deployment, key, None)

    assert merged == "StrategicMerge"
    assert at_gateway(world) is None
    events = AuditEvent.objects.filter(action="caller_key.limited").order_by("id")
    before = {"tokens_per_minute": None, "tokens_per_day": None}
    assert [(e.before, e.after["requests_per_minute"]) for e in events] == [
        (before | {"requests_per_minute": None}, 100),
        (before | {"requests_per_minute": 100}, None),
    ]


def test_the_same_limit_again_changes_nothing(world: World) -> None:
    deployment = keyed(world)
    key = make(world, deployment, requests_per_minute=7).row
    before = Deployment.objects.get().caller_keys_generation

    limit(world, deployment, key, 7)

    assert Deployment.objects.get().caller_keys_generation == before
    assert not AuditEvent.objects.filter(action="caller_key.limited").exists()


def test_what_others_did_to_the_limits_is_reverted(world: World) -> None:
    deployment = keyed(world)
    key = make(world, deployment, requests_per_minute=7).row

    del world.cluster.objects[_LIMITS]
    world.clock.move(300)
    world.reconcile_now(deployment)
    restored = at_gateway(world)
    world.cluster.objects[_LIMITS]["spec"]["rateLimit"]["local"]["rules"] = []
    world.clock.move(300)
    world.reconcile_now(deployment)

    assert restored == at_gateway(world) == {f"billing.{key.pk}": 7}


def test_an_open_address_has_no_limits(world: World) -> None:
    deployment = world.serving()

    make(world, deployment, requests_per_minute=7)

    assert at_gateway(world) is None
    assert _ROUTE in world.cluster.objects


@pytest.mark.parametrize("most", [0, -1, 1_000_001])
def test_a_limit_out_of_bounds_is_refused(world: World, most: int) -> None:
    deployment = world.serving()
    key = make(world, deployment).row

    with pytest.raises(Invalid, match="1 to 1000000 requests a minute"):
        limit(world, deployment, key, most)
    with pytest.raises(Invalid, match="1 to 1000000 requests a minute"):
        make(world, deployment, "other", requests_per_minute=most)

    assert [row.requests_per_minute for row in CallerKey.objects.all()] == [None]


def test_an_ended_key_has_no_limit_to_change(world: World) -> None:
    deployment = world.serving()
    key = make(world, deployment, requests_per_minute=7).row
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=key.pk)

    with pytest.raises(Conflict, match="already ended"):
        limit(world, deployment, key, 8)

    assert CallerKey.objects.get().requests_per_minute == 7


@pytest.mark.parametrize(("who", "error"), [("member", Forbidden), ("stranger", NotFound)])
def test_only_leads_and_admins_set_limits(world: World, who: str, error: type[DomainError]) -> None:
    deployment = world.serving()
    key = make(world, deployment).row

    with pytest.raises(error):
        set_limit(
            actor=getattr(world, who),
            deployment_id=deployment.pk,
            key_id=key.pk,
            requests_per_minute=1,
        )

    assert CallerKey.objects.get().requests_per_minute is None


def test_a_lead_sets_and_lifts_a_limit_on_the_page(world: World) -> None:
    deployment = keyed(world)
    key = make(world, deployment).row
    client = signed_in(world.lead)
    form = {"action": "limit", "key_id": str(key.pk)}

    done = client.post(_TAB, {**form, "requests_per_minute": "1200"}, follow=True)
    refused = client.post(_TAB, {**form, "requests_per_minute": "0"})
    kept = CallerKey.objects.get().requests_per_minute
    seen = page(signed_in(world.member).get(_TAB)).text
    lifted = client.post(_TAB, {**form, "requests_per_minute": ""}, follow=True)

    assert "1,200 requests a minute at most" in page(done).text
    assert (refused.status_code, kept) == (422, 1200)
    assert "1,200 requests a minute" in seen
    assert "no limit" in page(lifted).text
    assert CallerKey.objects.get().requests_per_minute is None


def test_rest_sets_a_limit_at_creation_and_later(world: World) -> None:
    deployment = keyed(world)
    client = APIClient()
    client.force_authenticate(world.lead)
    address = f"/api/v1/deployments/{deployment.pk}/callers"
    body = {"caller": "billing", "contact": "ana", "requests_per_minute": 30}

    made = client.post(address, body, format="json")
    path = f"{address}/{made.json()['id']}/limit"
    changed = client.post(path, {"requests_per_minute": 40}, format="json")
    missing = client.post(path, {}, format="json")
    lifted = client.post(path, {"requests_per_minute": None}, format="json")

    assert [answer.status_code for answer in (made, changed, missing, lifted)] == [
        201,
        200,
        422,
        200,
    ]
    assert [answer.json()["requests_per_minute"] for answer in (made, changed, lifted)] == [
        30,
        40,
        None,
    ]
