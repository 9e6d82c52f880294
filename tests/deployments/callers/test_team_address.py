"""One address for the language models of a team: where it is offered, and where it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.services import decisions, recheck, requests
from deployments.manifests.domain import http_route, route_paths
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from portal.core.definitions import Rejected
from portal.core.errors import Invalid
from tests.deployments.external_weights import checked, draft, register
from tests.deployments.refusals import refused
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_ON = {"access": "keys", "team_address": True}
_SPEC: dict[str, Any] = {
    "engine": "kserve-vllm",
    "instance_type": "g5.xlarge",
    "llm": {"hugging_face_id": "org/model"},
}


def offer(**features: bool | None) -> None:
    """A cluster that has everything but what is named."""
    there = {name: Feature(name != "kserve-knative") for name in FEATURE_DESCRIPTIONS}
    there["image-weights"] = Feature(is_there=True, version="native")
    there |= {name.replace("_", "-"): Feature(ok, why="why") for name, ok in features.items()}
    Cluster.objects.update(
        capabilities=Capabilities(features=there).to_json(),
        serving={"allowed_images": ["ghcr.io/org/*"]},
    )


def serving(world: World, name: str, model: str = "chat") -> Deployment:
    version = register(world, model=model)
    asked = draft(world, version, network=_ON)
    change = requests.request_deploy(
        actor=world.member, draft=type(asked)(asked.version_id, asked.cluster_id, name, asked.spec)
    )
    world.approved(change)
    world.cluster.make_ready(f"{name}-r1")
    return world.reconcile_now(Deployment.objects.get(name=name))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"network": {"access": "open", "team_address": True}}, "network.team_address"),
        (
            {
                "network": _ON,
                "llm": {"artifact": "pvc://weights/m", "nodes": 2},
            },
            "network.team_address",
        ),
        ({"engine": "triton", "llm": None, "network": _ON}, "network.team_address"),
    ],
)
def test_it_takes_keys_one_node_and_a_server_of_that_api(
    changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(Rejected) as raised:
        ServingSpec.from_json({**_SPEC, **changed})

    assert list(raised.value.fields) == [field]


@pytest.mark.parametrize("is_there", [False, None])
def test_a_gateway_that_is_not_known_to_check_keys_after_the_model_is_refused(
    world: World, is_there: bool | None
) -> None:
    offer(model_routing=is_there)
    version = register(world)

    with pytest.raises(Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft(world, version, network=_ON))

    assert "network.team_address" in raised.value.message
    assert not ChangeRequest.objects.exists()


def test_the_route_has_the_model_beside_the_deployment_s_own_path(world: World) -> None:
    offer()
    serving(world, "chat")

    rules = world.cluster.objects["HTTPRoute", "vision", "chat"]["spec"]["rules"]
    matches = {
        rule["filters"][0]["urlRewrite"]["path"]["replaceFullPath"]: rule["matches"]
        for rule in rules
    }
    header = {"type": "Exact", "name": "X-Gateway-Model-Name", "value": "chat"}

    assert matches["/v1/chat/completions"] == [
        {"path": {"type": "Exact", "value": "/vision/chat/v1/chat/completions"}},
        {
            "path": {"type": "Exact", "value": "/vision/v1/chat/completions"},
            "headers": [header],
        },
    ]
    assert len(matches["/v1/models"]) == 1, "the gateway lists models"
    assert len(matches["/health"]) == 1


def test_a_canary_that_keeps_an_open_address_cannot_serve_there(world: World) -> None:
    offer()
    version = register(world)
    asked = draft(world, version, network={"access": "open"})
    change = requests.request_deploy(
        actor=world.member,
        draft=type(asked)(asked.version_id, asked.cluster_id, "chat", asked.spec),
    )
    world.approved(change)
    world.cluster.make_ready("chat-r1")
    deployment = world.reconcile_now(Deployment.objects.get(name="chat"))
    api = APIClient()
    api.force_authenticate(world.member)
    body = {
        "kind": "canary",
        "version_id": version.pk,
        "steps": [{"weight": 20, "soak_seconds": 0, "min_requests": 0}],
        "spec": {**_SPEC, "llm": {}, "network": {"team_address": True}},
    }

    answer = api.post(f"/api/v1/deployments/{deployment.pk}/changes", body, format="json")

    assert answer.status_code == 422, answer.data
    assert answer.data["errors"] == [
        {
            "field": "spec.network.team_address",
            "detail": "The team's address serves callers with a key. Set network.access to keys, or turn it off.",
        }
    ]


def test_adapters_are_models_too_by_the_name_that_the_server_knows() -> None:
    llm = {"hugging_face_id": "org/model", "lora_adapters": "sql=org/sql-lora"}
    names = {
        engine: http_route.team_models_of(
            ServingSpec.from_json({**_SPEC, "engine": engine, "llm": llm, "network": _ON}), "chat"
        )
        for engine in ("kserve-vllm", "kserve-sglang")
    }

    assert names == {"kserve-vllm": ("chat", "sql"), "kserve-sglang": ("chat", "chat:sql")}


def test_an_edited_model_of_the_route_is_seen() -> None:
    match = route_paths.team_matches("vision", route_paths.ServerPath("/v1/completions"), ["a"])
    route = {"spec": {"rules": [{"matches": match}]}}
    other = {
        "spec": {
            "rules": [
                {
                    "matches": route_paths.team_matches(
                        "vision", route_paths.ServerPath("/v1/completions"), ["b"]
                    )
                }
            ]
        }
    }

    assert route_paths.paths_in(route) == {"Exact /vision/v1/completions a -> "}
    assert route_paths.paths_in(route) != route_paths.paths_in(other)


def test_a_name_of_a_model_leads_to_one_deployment(world: World) -> None:
    offer()
    deployment = serving(world, "chat")
    before = ChangeRequest.objects.count()
    assert deployment.stable_revision is not None
    version = deployment.stable_revision.version
    asked = draft(world, version, network=_ON)
    second = type(asked)(asked.version_id, asked.cluster_id, "other", asked.spec)

    with pytest.raises(Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=second)

    assert raised.value.fields == {
        "network.team_address": "Requests for chat at the team's address already go to vision/chat. Turn "
        "network.team_address off here, or request a canary on vision/chat."
    }
    assert ChangeRequest.objects.count() == before
    alone = checked(world, version, network={"access": "keys"})
    assert "Team address" not in [check.name for check in alone.checks]


def test_of_two_requests_for_a_name_only_one_is_approved(world: World) -> None:
    """Also where the worker has applied neither yet, and the page of the second was just opened."""
    offer()
    version = register(world)
    asked = draft(world, version, network=_ON)
    first, second = (
        requests.request_deploy(
            actor=world.member,
            draft=type(asked)(asked.version_id, asked.cluster_id, name, asked.spec),
        )
        for name in ("chat", "other")
    )
    assert recheck.repeat(actor=world.lead, change_id=second.pk).can_approve

    decisions.approve(actor=world.lead, change_id=first.pk, evidence_hash=first.evidence_hash)
    with refused(world, Invalid) as raised:
        decisions.approve(actor=world.lead, change_id=second.pk, evidence_hash=second.evidence_hash)

    assert "Requests for chat at the team's address already go to vision/chat." in raised[0].message
    assert not recheck.repeat(actor=world.lead, change_id=second.pk).can_approve


def test_a_request_that_is_not_approved_takes_no_name(world: World) -> None:
    offer()
    version = register(world)
    asked = draft(world, version, network=_ON)
    first = requests.request_deploy(
        actor=world.member,
        draft=type(asked)(asked.version_id, asked.cluster_id, "chat", asked.spec),
    )
    decisions.withdraw(actor=world.member, change_id=first.pk)

    second = requests.request_deploy(
        actor=world.member,
        draft=type(asked)(asked.version_id, asked.cluster_id, "other", asked.spec),
    )

    approved = decisions.approve(
        actor=world.lead, change_id=second.pk, evidence_hash=second.evidence_hash
    )
    assert approved.state == "approved"


def test_rest_and_the_tab_have_the_address(world: World) -> None:
    offer()
    deployment = serving(world, "chat")
    api = APIClient()
    api.force_authenticate(world.member)
    browser = Client()
    browser.force_login(world.member)

    with_it = api.get(f"/api/v1/deployments/{deployment.pk}").data["team_url"]
    text = page(browser.get("/vision/deployments/chat/callers")).text
    row = Revision.objects.get(deployment=deployment)
    spec = {**row.spec, "network": {**row.spec["network"], "team_address": False}}
    Revision.objects.filter(pk=row.pk).update(spec=spec)
    without = api.get(f"/api/v1/deployments/{deployment.pk}").data["team_url"]

    assert with_it == "http://gateway.example/vision/v1"
    assert "http://gateway.example/vision/v1" in text
    assert without == ""
