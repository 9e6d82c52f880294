"""The objects of a team's address: written with each of its deployments, compared, and taken away with the last."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.test import Client

from deployments.callers.services import keys
from deployments.delivery.services import live_objects
from deployments.manifests.domain.access import team_address
from deployments.models import CallerKey, Deployment, Revision
from fleet.kube.domain.errors import NotAllowed
from tests.deployments.callers.istio import with_istio
from tests.deployments.callers.test_keys import make
from tests.deployments.callers.test_team_address import offer, serving
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_KINDS = ("SecurityPolicy", "BackendTrafficPolicy", "EnvoyExtensionPolicy", "HTTPRoute")


def _address(world: World) -> dict[str, dict[str, Any]]:
    """The objects of the address by kind."""
    objects = world.cluster.objects
    return {
        kind: objects[kind, "vision", team_address.NAME]
        for kind in _KINDS
        if (kind, "vision", team_address.NAME) in objects
    }


def _members(world: World) -> list[str]:
    refs = _address(world)["SecurityPolicy"]["spec"]["apiKeyAuth"]["credentialRefs"]
    return [ref["name"].removesuffix("-team-callers") for ref in refs]


def _script(world: World) -> str:
    return str(_address(world)["EnvoyExtensionPolicy"]["spec"]["lua"][0]["inline"])


def _secret(world: World, name: str) -> dict[str, str]:
    data = world.cluster.objects["Secret", "vision", f"{name}-team-callers"]["data"]
    return {client: base64.b64decode(value).decode() for client, value in data.items()}


def test_a_deployment_brings_the_address_and_its_policies_come_before_the_route(
    world: World,
) -> None:
    offer()
    serving(world, "chat")

    applied = [(call[1], call[2]) for call in world.cluster.calls if call[0] == "apply"]
    of_address = [kind for kind, name in applied if name == team_address.NAME]
    secret = applied.index(("Secret", "chat-team-callers"))

    assert of_address[-1] == "HTTPRoute"
    assert set(of_address) == set(_KINDS)
    assert secret < applied.index(("SecurityPolicy", team_address.NAME))
    assert _members(world) == ["chat"]
    assert 'MODELS = {["chat"] = "chat"}' in _script(world)
    (rule,) = _address(world)["HTTPRoute"]["spec"]["rules"]
    assert "backendRefs" not in rule
    assert {match["path"]["value"] for match in rule["matches"]} >= {
        "/vision/v1/chat/completions",
        "/vision/v1/models",
    }


def test_deployments_share_it_and_the_last_one_takes_it_away(world: World) -> None:
    offer()
    chat, code = serving(world, "chat"), serving(world, "code", "code")
    both = _members(world), _script(world)

    _retire(world, chat)
    without_chat = _members(world), _script(world)
    left = [name for kind, _, name in world.cluster.objects if kind == "Secret"]
    _retire(world, code)

    assert both[0] == ["chat", "code"]
    assert '["chat"] = "chat", ["code"] = "code"' in both[1]
    assert without_chat[0] == ["code"]
    assert '["chat"]' not in without_chat[1]
    assert "chat-team-callers" not in left
    assert "code-team-callers" in left
    assert _address(world) == {}
    assert not [name for kind, _, name in world.cluster.objects if kind == "Secret"]


def _retire(world: World, deployment: Deployment) -> None:
    Deployment.objects.filter(pk=deployment.pk).update(
        is_retiring=True, desired_generation=deployment.desired_generation + 10
    )
    for _ in range(4):
        world.reconcile_now(deployment)
    assert Deployment.objects.get(pk=deployment.pk).is_retired


def test_keys_come_and_go_with_those_of_the_deployment(world: World) -> None:
    offer()
    chat, code = serving(world, "chat"), serving(world, "code", "code")
    made = make(world, chat, "billing")
    other = make(world, code, "search")
    before = _secret(world, "chat"), _secret(world, "code")
    script = _script(world)

    keys.revoke(actor=world.lead, deployment_id=chat.pk, key_id=made.row.pk)
    world.reconcile_now(chat)

    assert before == (
        {f"chat.billing.{made.row.pk}": made.plain},
        {f"code.search.{other.row.pk}": other.plain},
    )
    assert _secret(world, "chat") == {}
    assert _secret(world, "code") == before[1]
    assert CallerKey.objects.get(pk=made.row.pk).is_revoked
    # A new script makes the gateway drain its listener: a key is no reason.
    assert _script(world) == script


def test_a_deployment_that_was_never_pushed_gets_its_secret_with_the_first_policy_that_names_it(
    world: World,
) -> None:
    """Else the policy would name a Secret that does not exist, and serve nobody of the team."""
    offer()
    serving(world, "chat")
    code = serving(world, "code", "code")
    Deployment.objects.filter(pk=code.pk).update(first_ready_at=None)
    del world.cluster.objects["Secret", "vision", "code-team-callers"]
    chat = Deployment.objects.get(name="chat")
    make(world, chat, "billing")

    assert _members(world) == ["chat", "code"]
    assert _secret(world, "code") == {}


@pytest.mark.parametrize("kind", _KINDS)
def test_what_somebody_changes_or_deletes_is_put_back_and_is_nobodys_drift(
    world: World, kind: str
) -> None:
    offer()
    deployment = serving(world, "chat")
    before = _address(world)[kind]["spec"]
    del world.cluster.objects[kind, "vision", team_address.NAME]
    Deployment.objects.update(objects_checked_at=None)

    deployment = world.reconcile_now(deployment)

    assert _address(world)[kind]["spec"] == before
    assert deployment.drift == {}


def test_leaving_the_address_closes_it_and_keeps_the_deployment(world: World) -> None:
    offer()
    deployment = serving(world, "chat")
    row = Revision.objects.get(deployment=deployment)
    network = {**row.spec["network"], "team_address": False}
    second = Revision.objects.create(
        deployment=deployment,
        number=2,
        version=row.version,
        spec={**row.spec, "network": network},
        created_by=row.created_by,
        created_at=row.created_at,
    )
    Deployment.objects.filter(pk=deployment.pk).update(
        stable_revision=second, desired_generation=deployment.desired_generation + 1
    )

    world.reconcile_now(deployment)

    objects = world.cluster.objects
    assert _address(world) == {}
    assert ("Secret", "vision", "chat-team-callers") not in objects
    assert ("Secret", "vision", "chat-callers") in objects
    matches = objects["HTTPRoute", "vision", "chat"]["spec"]["rules"][0]["matches"]
    assert len(matches) == 1


def test_a_refusal_there_keeps_no_route_from_its_deployment_and_is_shown(world: World) -> None:
    offer()
    world.cluster.refuse["EnvoyExtensionPolicy"] = NotAllowed("forbidden")

    deployment = serving(world, "chat")
    refusals = live_objects.refused_policies(deployment)

    assert ("HTTPRoute", "vision", "chat") in world.cluster.objects
    assert ("HTTPRoute", "vision", team_address.NAME) not in world.cluster.objects
    assert [(one.kind, one.is_shared) for one in refusals] == [
        ("EnvoyExtensionPolicy", True),
        ("HTTPRoute", True),
    ]


def test_a_gateway_that_refuses_the_script_says_why(world: World) -> None:
    offer()
    deployment = serving(world, "chat")
    policy = _address(world)["EnvoyExtensionPolicy"]
    condition = {"type": "Accepted", "status": "False", "reason": "Invalid", "message": "disabled"}
    policy["status"] = {"ancestors": [{"conditions": [condition]}]}

    (refusal,) = live_objects.refused_policies(deployment)

    assert (refusal.kind, refusal.message, refusal.is_shared) == (
        "EnvoyExtensionPolicy",
        "disabled",
        True,
    )


def test_the_tab_says_that_the_deployments_own_address_is_as_it_should_be(world: World) -> None:
    offer()
    world.cluster.refuse["EnvoyExtensionPolicy"] = NotAllowed("forbidden")
    serving(world, "chat")
    browser = Client()
    browser.force_login(world.lead)

    text = page(browser.get("/vision/deployments/chat/callers")).text

    assert (
        "The gateway does not serve the team's address by its EnvoyExtensionPolicy. The deployment's own address "
        "works." in text
    )
    assert "answers 500 to everyone" not in text


def test_istio_gets_nothing_of_it(world: World) -> None:
    offer()
    with_istio(world)

    serving(world, "chat")

    assert _address(world) == {}
