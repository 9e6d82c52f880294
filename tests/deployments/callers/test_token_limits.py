"""Limits of tokens: a key that used too many is paused at the gateway, and goes on when its time has come."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from deployments.callers.services import keys, limits, token_limits
from deployments.callers.services.issuing import KeyLimits
from deployments.models import CallerKey, Deployment, KeyTokens
from portal.core.errors import Invalid
from tests.deployments.callers import istio
from tests.deployments.callers.test_keys import keyed, make
from tests.deployments.callers.test_limits import _LIMITS
from tests.deployments.callers.test_page_and_rest import _TAB, signed_in
from tests.deployments.callers.test_team_address import offer, serving
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]


def counting(world: World) -> Deployment:
    """A language model on a cluster that counts tokens, at the beginning of a minute."""
    deployment = world.play("counting tokens", lambda: _counting(world))
    world.clock.at = world.clock.at.replace(hour=12, minute=0, second=5, microsecond=0)
    return Deployment.objects.get(pk=deployment.pk)


def _counting(world: World) -> Deployment:
    offer()
    return serving(world, "detector")


def used(world: World, key: CallerKey, tokens: int) -> CallerKey:
    token_limits.record(cluster_id=world.cluster_id, tokens={key.pk: tokens})
    world.work()
    world.reconcile_now(key.deployment)
    return CallerKey.objects.get(pk=key.pk)


def at_gateway(world: World) -> dict[str, tuple[int, str]]:
    policy = world.cluster.objects.get(_LIMITS)
    rules = policy["spec"]["rateLimit"]["local"]["rules"] if policy else []
    return {
        rule["clientSelectors"][0]["headers"][0]["value"]: (
            rule["limit"]["requests"],
            rule["limit"]["unit"],
        )
        for rule in rules
    }


def resume(world: World, deployment: Deployment) -> int:
    resumed = token_limits.resume_paused() if keys.has_work() else 0
    world.work()
    world.reconcile_now(deployment)
    return resumed


def test_a_key_is_paused_for_the_minutes_that_its_tokens_were_for_and_then_goes_on(
    world: World,
) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=1000, requests_per_minute=60).row
    other = make(world, deployment, "search", tokens_per_minute=1000).row

    below = used(world, key, 999)
    before = at_gateway(world)
    paused = used(world, key, 2200)
    during = at_gateway(world)
    world.clock.move(179 - 5)
    early = resume(world, deployment)
    world.clock.move(1)
    resumed = resume(world, deployment)

    assert below.paused_until is None
    assert before == {key.client: (60, "Minute")}
    assert paused.paused_until == world.clock.at.replace(minute=3, second=0)
    assert during == {key.client: (1, "Day")}
    assert CallerKey.objects.get(pk=other.pk).paused_until is None
    assert (early, resumed) == (0, 1)
    assert at_gateway(world) == before
    assert CallerKey.objects.get(pk=key.pk).paused_until is None


def test_a_days_limit_holds_until_midnight_utc(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_day=5000).row

    paused = used(world, key, 5000)
    midnight = world.clock.at.replace(hour=0, minute=0, second=0) + timedelta(days=1)
    world.clock.at = midnight - timedelta(seconds=1)
    early = resume(world, deployment)
    world.clock.at = midnight
    resumed = resume(world, deployment)

    assert paused.paused_until == midnight
    assert (early, resumed, at_gateway(world)) == (0, 1, {})


def test_more_use_while_it_is_paused_only_moves_the_end(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=100).row
    first = used(world, key, 150).paused_until
    generation = Deployment.objects.get().caller_keys_generation

    second = used(world, key, 400).paused_until

    assert first is not None
    assert second == first + timedelta(minutes=4)
    assert Deployment.objects.get().caller_keys_generation == generation


def test_a_higher_limit_lets_it_go_on_at_once(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=100).row
    used(world, key, 150)
    raised = KeyLimits(tokens_per_minute=1000)

    row = limits.set_limits(
        actor=world.lead, deployment_id=deployment.pk, key_id=key.pk, limits=raised
    )
    world.work()
    world.reconcile_now(deployment)

    assert row.paused_until is None
    assert at_gateway(world) == {}


def test_rotation_takes_the_limits_along_and_an_ended_key_is_not_paused(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=100, tokens_per_day=900).row

    new = keys.rotate(actor=world.lead, deployment_id=deployment.pk, key_id=key.pk)
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=key.pk)
    ended = used(world, key, 10_000)

    assert (new.row.tokens_per_minute, new.row.tokens_per_day) == (100, 900)
    assert ended.paused_until is None


def test_tokens_of_another_clusters_key_of_the_same_name_are_not_taken(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=100).row

    token_limits.record(cluster_id=world.cluster_id + 1, tokens={key.pk: 10_000})

    assert not KeyTokens.objects.exists()


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (KeyLimits(tokens_per_minute=0), "1 to 100000000 tokens a minute"),
        (KeyLimits(tokens_per_day=10**12), "1 to 100000000000 tokens a day"),
    ],
)
def test_a_limit_out_of_bounds_is_refused(world: World, stated: KeyLimits, message: str) -> None:
    deployment = counting(world)
    key = make(world, deployment).row

    with pytest.raises(Invalid, match=message):
        limits.set_limits(
            actor=world.lead, deployment_id=deployment.pk, key_id=key.pk, limits=stated
        )

    assert KeyLimits.from_key(CallerKey.objects.get()) == KeyLimits()


def test_where_nobody_counts_tokens_or_enforces_limits_they_are_refused_with_the_reason(
    world: World,
) -> None:
    offer(token_counts=None)
    deployment = serving(world, "detector")
    with pytest.raises(Invalid, match="Could not check Counting tokens of callers"):
        make(world, deployment, tokens_per_day=5)

    istio.with_istio(world)
    deployment.refresh_from_db()
    refused = "enforces no limits of keys: Istio has none"
    with pytest.raises(Invalid, match=refused):
        make(world, deployment, tokens_per_minute=5)
    with pytest.raises(Invalid, match=refused):
        make(world, deployment, requests_per_minute=5)

    assert CallerKey.objects.count() == 0


def test_a_limit_from_before_does_not_stand_in_the_way_of_another(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_day=900).row
    offer(token_counts=False)
    changed = KeyLimits(requests_per_minute=5, tokens_per_day=900)

    limits.set_limits(actor=world.lead, deployment_id=deployment.pk, key_id=key.pk, limits=changed)

    assert KeyLimits.from_key(CallerKey.objects.get()) == changed


def test_a_model_without_tokens_takes_no_limit_of_them_and_its_page_offers_none(
    world: World,
) -> None:
    deployment = keyed(world)

    with pytest.raises(Invalid, match="serves no language model, so nothing counts tokens"):
        make(world, deployment, tokens_per_day=5)
    shown = page(signed_in(world.lead).get(_TAB)).text

    assert CallerKey.objects.count() == 0
    assert "Requests a minute" in shown
    assert "Tokens a" not in shown


def test_use_against_limit_is_on_the_page_and_in_rest(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, tokens_per_minute=1000, tokens_per_day=50_000).row
    used(world, key, 4500)
    client = APIClient()
    client.force_authenticate(world.member)

    shown = page(signed_in(world.member).get(_TAB)).text
    (listed,) = client.get(f"/api/v1/deployments/{deployment.pk}/callers").json()

    assert "4,500 of 1,000 tokens used this minute" in shown
    assert "4,500 of 50,000 tokens used today" in shown
    assert "token limit reached; resumes" in shown
    assert "12:04 UTC" in shown
    assert (listed["tokens_this_minute"], listed["tokens_today"]) == (4500, 4500)
    assert listed["paused_until"].endswith("T12:04:00Z")


def test_a_lead_sets_limits_of_tokens_on_the_page_and_by_rest(world: World) -> None:
    deployment = counting(world)
    key = make(world, deployment, requests_per_minute=9).row
    form = {"action": "limit", "key_id": str(key.pk), "requests_per_minute": "9"}
    api = APIClient()
    api.force_authenticate(world.lead)
    address = f"/api/v1/deployments/{deployment.pk}/callers/{key.pk}/limit"

    done = signed_in(world.lead).post(_TAB, {**form, "tokens_per_minute": "700"}, follow=True)
    on_page = KeyLimits.from_key(CallerKey.objects.get())
    only_requests = api.post(address, {"requests_per_minute": None}, format="json")
    by_rest = api.post(address, {"requests_per_minute": None, "tokens_per_day": 5}, format="json")

    assert "9 requests a minute, 700 tokens a minute at most" in page(done).text
    assert on_page == KeyLimits(9, 700, None)
    assert (only_requests.status_code, by_rest.status_code) == (200, 200)
    assert KeyLimits.from_key(CallerKey.objects.get()) == KeyLimits(None, 700, 5)
