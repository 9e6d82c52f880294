"""Signed keys: made where the gateway verifies tokens, listed beside it, verified with the published keys."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.test import Client

from deployments.callers.services import keys
from deployments.models import CallerKey, SigningKey
from deployments.serving.services import desired_state
from fleet.kube.domain.errors import NotAllowed
from tests.deployments.callers.istio import ACCESS, TOKENS, keyed, principals, with_istio
from tests.deployments.callers.test_keys import make
from tests.deployments.callers.test_page_and_rest import _TAB, signed_in
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_ROUTE = ("HTTPRoute", "vision", "detector")
_JWKS = "/.well-known/jwks.json"


def published() -> dict[str, jwt.PyJWK]:
    answer = Client().get(_JWKS)
    assert answer.status_code == 200
    return {item["kid"]: jwt.PyJWK(item) for item in json.loads(answer.content)["keys"]}


def verified(plain: str) -> dict[str, object]:
    token = plain.removeprefix("slc_")
    key = published()[jwt.get_unverified_header(token)["kid"]]
    claims: dict[str, object] = jwt.decode(
        token,
        key,
        ["ES256"],
        audience="vision/detector",
        options={"verify_exp": False, "verify_iat": False},
    )
    return claims


def test_a_signed_key_names_its_caller_and_deployment_and_verifies_with_the_published_key(
    world: World, settings: Any
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example"
    deployment = keyed(world)

    made = make(world, deployment, days=30)

    row = CallerKey.objects.get()
    assert verified(made.plain) == {
        "iss": "https://slipway.example",
        "sub": f"billing.{row.pk}",
        "aud": "vision/detector",
        "iat": int(world.clock.at.timestamp()),
        "exp": int((world.clock.at + timedelta(days=30)).timestamp()),
    }
    assert row.prefix == f"…{made.plain[-7:]}"
    assert str(row) == f"…{made.plain[-7:]} of billing"
    stored = [str(value) for value in CallerKey.objects.values().get().values()]
    assert not [text for text in stored if made.plain in text]
    signer = SigningKey.objects.get()
    assert "PRIVATE KEY" not in f"{signer.sealed}{signer.public_jwk}"
    assert "d" not in signer.public_jwk


def test_policies_beside_the_gateway_list_what_works_and_come_before_the_route(
    world: World,
) -> None:
    deployment = keyed(world)
    calls = [name for verb, *name in world.cluster.calls if verb == "apply"]
    nobody = principals(world)
    first, second = make(world, deployment), make(world, deployment, "search")
    both = principals(world)
    keys.revoke(actor=world.lead, deployment_id=deployment.pk, key_id=first.row.pk)
    world.work()

    order = [calls.index([kind, name]) for kind, _, name in (TOKENS, ACCESS, _ROUTE)]
    assert order == sorted(order)
    assert nobody == []
    assert both == [f"slipway/billing.{first.row.pk}", f"slipway/search.{second.row.pk}"]
    assert principals(world) == [f"slipway/search.{second.row.pk}"]
    rules = world.cluster.objects[TOKENS]["spec"]["jwtRules"]
    assert [rule["issuer"] for rule in rules] == ["slipway"]
    assert json.loads(rules[0]["jwks"]) == json.loads(Client().get(_JWKS).content)
    assert ("SecurityPolicy", "vision", "detector") not in world.cluster.objects
    assert ("Secret", "vision", "detector-callers") not in world.cluster.objects


def test_signing_keys_rotate_and_old_ones_are_published_while_their_keys_are_open(
    world: World,
) -> None:
    deployment = keyed(world)
    old = make(world, deployment, days=100)
    world.clock.move(timedelta(days=91).total_seconds())

    new = make(world, deployment, "search")

    kids = {row.kid: row for row in SigningKey.objects.all()}
    assert len(kids) == 2
    assert old.row.signing_key is not None
    retired = kids[old.row.signing_key.kid]
    assert (retired.sealed, retired.retired_at) == ("", world.clock.at)
    assert verified(old.plain)["sub"] == old.row.client
    assert verified(new.plain)["sub"] == new.row.client

    world.clock.move(timedelta(days=10).total_seconds())
    keys.end_expired()
    assert new.row.signing_key is not None
    assert set(published()) == {new.row.signing_key.kid}


def test_a_lost_secret_key_signs_anew_and_opened_keys_go_on(world: World, settings: Any) -> None:
    deployment = keyed(world)
    old = make(world, deployment)

    settings.SECRET_KEY = "another-secret-key-" * 4
    new = make(world, deployment, "search")

    assert old.row.signing_key_id != new.row.signing_key_id
    assert principals(world) == [f"slipway/{old.row.client}", f"slipway/{new.row.client}"]
    assert verified(old.plain)["sub"] == old.row.client


def test_what_others_did_to_the_policies_is_reverted(world: World) -> None:
    deployment = keyed(world)
    made = make(world, deployment)
    expected = [f"slipway/{made.row.client}"]

    for broken in (ACCESS, TOKENS):
        del world.cluster.objects[broken]
        world.clock.move(300)
        world.reconcile_now(deployment)
        assert broken in world.cluster.objects
    world.cluster.objects[ACCESS]["spec"]["rules"] = []
    world.clock.move(300)
    world.reconcile_now(deployment)

    assert principals(world) == expected


def test_without_permission_beside_the_gateway_the_route_is_not_written(world: World) -> None:
    world.cluster.refuse["AuthorizationPolicy"] = NotAllowed("authorizationpolicies is forbidden")

    keyed(world)

    assert _ROUTE not in world.cluster.objects


def test_a_retired_deployment_leaves_no_policy_of_its_own(world: World) -> None:
    deployment = keyed(world)
    desired_state.retire(deployment)
    for _ in range(4):
        world.clock.move(300)
        world.reconcile_now(deployment)

    assert ACCESS not in world.cluster.objects


def test_keys_from_before_the_gateway_verified_them_are_named_on_the_page(world: World) -> None:
    deployment = world.serving()
    made = make(world, deployment)
    with_istio(world)

    shown = page(signed_in(world.lead).get(_TAB)).text

    assert "verifies keys that the portal signs" in shown
    assert made.row.prefix in shown
    assert "not accepted by this gateway: rotate it" in shown


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_the_published_keys_are_for_everyone_cached_and_only_read(
    world: World, method: str
) -> None:
    keyed(world)
    first = Client().get(_JWKS)
    again = Client().get(_JWKS, headers={"if-none-match": first["ETag"]})
    changed = getattr(Client(), method)(_JWKS)

    assert first["Content-Type"] == "application/jwk-set+json"
    assert first["Cache-Control"] == "public, max-age=300"
    assert (again.status_code, changed.status_code) == (304, 405)
