"""Callers with tokens of the company's identity provider: registered, listed, renewed and taken off."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.access.domain.callers import RequiredClaim
from deployments.callers.services import keys, limits, token_issuers
from deployments.callers.services.issuing import KeyLimits, NewKey
from deployments.callers.services.token_issuers import IssuerDraft
from deployments.changes.services import requests
from deployments.delivery.services import caller_keys
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import CallerKey, Deployment, TokenIssuer
from deployments.spec.domain.serving_spec import Network
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid
from tests.contract import schemas
from tests.deployments.callers.test_keys import make
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.fixtures.identity_provider import AUDIENCE, ISSUER
from tests.localcluster.controllers.conftest import store
from tests.localcluster.controllers.test_api_keys import model

__all__ = ["cluster_calls", "model", "moving_clock", "store", "world"]
_POLICY = ("SecurityPolicy", "vision", "detector")
_LIMITS = ("BackendTrafficPolicy", "vision", "detector")
_SECRET = ("Secret", "vision", "detector-callers")
_ROUTE = ("HTTPRoute", "vision", "detector")
_METADATA = "/vision/detector/v2/models/detector"
_JWKS = "https://login.acme.example/jwks"
_REMOVED = {"remove": ["Authorization", "x-api-key"]}


def offer(world: World, is_there: bool | None = True) -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    known = Capabilities.from_json(row.capabilities)
    there = {"caller-keys": Feature(is_there=True), "caller-jwt": Feature(is_there)}
    row.capabilities = Capabilities(features={**known.features, **there}).to_json()
    row.save()


def register(world: World, jwks_url: str = _JWKS, **more: Any) -> TokenIssuer:
    named = {"name": "acme", "url": ISSUER, "audiences": [AUDIENCE], **more}
    return token_issuers.add(actor=world.admin, draft=IssuerDraft(jwks_url=jwks_url, **named))


def with_tokens(world: World, jwks_url: str = _JWKS, **more: Any) -> Deployment:
    return world.play(
        f"with tokens {jwks_url} {more}", lambda: _with_tokens(world, jwks_url, **more)
    )


def _with_tokens(world: World, jwks_url: str, **more: Any) -> Deployment:
    offer(world)
    register(world, jwks_url, **more)
    return world.serving(network=Network(access="jwt", token_issuer="acme"))


def let_in(world: World, deployment: Deployment, value: str, name: str = "billing") -> NewKey:
    return make(world, deployment, name, token_issuer="acme", claim_value=value)


def allowed(world: World) -> list[list[dict[str, Any]]]:
    rules = world.cluster.objects[_POLICY]["spec"]["authorization"]["rules"]
    return [rule["principal"]["jwt"]["claims"] for rule in rules]


def test_only_listed_callers_are_in_the_policy_and_no_key_is(world: World) -> None:
    groups = RequiredClaim("groups", ("models",), is_list=True)
    deployment = with_tokens(world, required_claims=[groups])
    empty = world.cluster.objects[_POLICY]["spec"]

    made = let_in(world, deployment, "svc-billing")
    let_in(world, deployment, "repo:acme/train", "train")
    world.reconcile_now(deployment)

    required = {"name": "groups", "valueType": "StringArray", "values": ["models"]}
    named = {"name": "sub", "valueType": "String", "values": ["repo:acme/train", "svc-billing"]}
    assert empty["authorization"] == {"defaultAction": "Deny", "rules": []}
    assert empty["jwt"]["providers"] == [
        {
            "name": "acme",
            "issuer": ISSUER,
            "audiences": [AUDIENCE],
            "remoteJWKS": {"uri": _JWKS},
            "extractFrom": {
                "headers": [
                    {"name": "Authorization", "valuePrefix": "Bearer "},
                    {"name": "x-api-key"},
                ]
            },
            "claimToHeaders": [{"claim": "sub", "header": "slipway-caller"}],
        }
    ]
    assert allowed(world) == [[named, required]]
    assert _SECRET not in world.cluster.objects
    assert made.plain == ""
    for rule in world.cluster.objects[_ROUTE]["spec"]["rules"]:
        assert rule["filters"][-1]["requestHeaderModifier"] == _REMOVED
    event = AuditEvent.objects.filter(action="caller_key.created").order_by("pk")[0]
    assert event.after["claim_value"] == "svc-billing"
    assert event.after["token_issuer"] == "acme"


def test_a_caller_is_limited_renewed_without_a_gap_and_taken_off(world: World) -> None:
    deployment = with_tokens(world)
    made = let_in(world, deployment, "svc-billing")
    subject: dict[str, Any] = {"actor": world.lead, "deployment_id": deployment.pk}

    limits.set_limits(
        **subject, key_id=made.row.pk, limits=KeyLimits(60), only=["requests_per_minute"]
    )
    renewed = keys.rotate(**subject, key_id=made.row.pk, days=10)
    world.reconcile_now(deployment)
    rules = world.cluster.objects[_LIMITS]["spec"]["rateLimit"]["local"]["rules"]
    listed = allowed(world)
    keys.revoke(**subject, key_id=renewed.row.pk)
    world.reconcile_now(deployment)

    header = {"name": "slipway-caller", "type": "Exact", "value": "svc-billing"}
    assert [rule["clientSelectors"][0]["headers"] for rule in rules] == [[header]]
    assert listed[0][0]["values"] == ["svc-billing"]
    assert renewed.plain == ""
    assert CallerKey.objects.get(pk=made.row.pk).ended_at is not None
    assert allowed(world) == []
    assert let_in(world, deployment, "svc-billing", "other").row.client == "svc-billing"


def test_with_delivery_through_git_the_list_of_callers_is_applied_directly_too(
    world: World,
) -> None:
    deployment = with_tokens(world)
    let_in(world, deployment, "svc-billing")
    world.reconcile_now(deployment)
    applied = world.cluster.objects.pop(_POLICY)
    row = Deployment.objects.get(pk=deployment.pk)

    refused = caller_keys.push([RenderedDeployment(row)], is_direct=lambda _: False)

    assert refused == {}
    assert world.cluster.objects[_POLICY]["spec"] == applied["spec"]
    assert _SECRET not in world.cluster.objects


def test_more_callers_than_one_rule_holds(world: World) -> None:
    deployment = with_tokens(world)
    for number in range(130):
        draft = keys.KeyDraft(
            name=f"svc-{number}",
            contact="ana@example.org",
            limits=KeyLimits(),
            token_issuer="acme",
            claim_value=f"svc-{number:03}",
        )
        keys.create(actor=world.lead, deployment_id=deployment.pk, draft=draft)

    world.reconcile_now(deployment)

    assert [len(claims[0]["values"]) for claims in allowed(world)] == [16] * 8 + [2]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": "Acme"}, "name"),
        ({"url": "login.acme.example"}, "url"),
        ({"jwks_url": "http://login.acme.example/jwks"}, "jwks_url"),
        ({"jwks_url": "https://me:secret@login.acme.example/jwks"}, "jwks_url"),
        ({"audiences": []}, "audiences"),
        ({"audiences": ["a b"]}, "audiences"),
        ({"claim": "a claim"}, "claim"),
        ({"cluster_id": 999}, "cluster_id"),
        ({"required_claims": [RequiredClaim("sub", ("x",))]}, "required_claims"),
        ({"required_claims": [RequiredClaim("groups", ())]}, "required_claims"),
    ],
)
def test_what_is_refused_of_an_issuer(world: World, fields: dict[str, Any], named: str) -> None:
    before = AuditEvent.objects.count()

    with pytest.raises(Invalid) as refused:
        register(world, **fields)

    assert list(refused.value.fields) == [named]
    assert TokenIssuer.objects.count() == 0
    assert AuditEvent.objects.count() == before


def test_issuers_are_of_platform_admins_and_stay_while_they_are_used(world: World) -> None:
    deployment = with_tokens(world)
    row = TokenIssuer.objects.get()
    draft = IssuerDraft("two", ISSUER, _JWKS, [AUDIENCE])
    with pytest.raises(Forbidden):
        token_issuers.add(actor=world.lead, draft=draft)
    with pytest.raises(Forbidden):
        token_issuers.remove(actor=world.lead, issuer_id=row.pk)
    with pytest.raises(Conflict) as used:
        token_issuers.remove(actor=world.admin, issuer_id=row.pk)
    kept = TokenIssuer.objects.get().removed_at
    Deployment.objects.filter(pk=deployment.pk).update(is_retired=True)
    token_issuers.remove(actor=world.admin, issuer_id=row.pk)
    with pytest.raises(Conflict) as taken:
        register(world)

    assert used.value.code == "in_use"
    assert str(deployment) in used.value.message
    assert kept is None
    assert taken.value.code == "name_taken"
    assert TokenIssuer.objects.count() == 1


@pytest.mark.parametrize(
    ("issuer", "value"), [("other", "svc"), ("acme", ""), ("acme", "a b"), ("", "svc")]
)
def test_a_caller_needs_an_issuer_of_the_cluster_and_a_value(
    world: World, issuer: str, value: str
) -> None:
    deployment = with_tokens(world)

    with pytest.raises(Invalid):
        make(world, deployment, token_issuer=issuer, claim_value=value)

    assert CallerKey.objects.count() == 0


def test_a_value_is_listed_once(world: World) -> None:
    deployment = with_tokens(world)
    let_in(world, deployment, "svc-billing")

    with pytest.raises(Conflict) as refused:
        let_in(world, deployment, "svc-billing", "other")

    assert refused.value.code == "already_listed"
    assert CallerKey.objects.count() == 1


def test_a_request_names_a_registered_issuer_on_a_gateway_that_verifies_tokens(
    world: World,
) -> None:
    offer(world)
    network = Network(access="jwt", token_issuer="acme")
    with pytest.raises(DomainError) as unknown:
        requests.request_deploy(actor=world.member, draft=world.draft(network=network))
    register(world)
    offer(world, False)
    with pytest.raises(DomainError) as on_istio:
        requests.request_deploy(actor=world.member, draft=world.draft(network=network))
    offer(world, None)
    with pytest.raises(DomainError) as not_known:
        requests.request_deploy(actor=world.member, draft=world.draft(network=network))

    assert "No token issuer acme is registered" in unknown.value.message
    assert "Set network.access to keys" in on_istio.value.message
    assert "Set network.access to keys" in not_known.value.message
    assert not Deployment.objects.exists()


def test_rest_registers_lets_in_and_lists(world: World) -> None:
    offer(world)
    admin, lead = APIClient(), APIClient()
    admin.force_authenticate(world.admin)
    lead.force_authenticate(world.lead)
    body = {
        "name": "acme",
        "url": ISSUER,
        "jwks_url": _JWKS,
        "audiences": [AUDIENCE],
        "required_claims": [{"claim": "groups", "values": ["models"], "is_list": True}],
    }
    forbidden = lead.post("/api/v1/token-issuers", body, format="json")
    registered = admin.post("/api/v1/token-issuers", body, format="json")
    deployment = world.serving(network=Network(access="jwt", token_issuer="acme"))
    address = f"/api/v1/deployments/{deployment.pk}/callers"
    caller = {
        "caller": "billing",
        "contact": "ana",
        "token_issuer": "acme",
        "claim_value": "svc-billing",
    }
    made = lead.post(address, caller, format="json")
    listed = lead.get(address).json()
    in_use = admin.delete(f"/api/v1/token-issuers/{registered.json()['id']}")

    assert (forbidden.status_code, registered.status_code, made.status_code) == (403, 201, 201)
    assert registered.json() == {
        **body,
        "id": registered.json()["id"],
        "cluster_id": None,
        "claim": "sub",
    }
    assert lead.get("/api/v1/token-issuers").json() == [registered.json()]
    assert made.json()["key"] == ""
    assert (listed[0]["token_issuer"], listed[0]["claim_value"]) == ("acme", "svc-billing")
    assert in_use.status_code == 409


def test_policy_and_route_are_valid_by_the_published_schemas(world: World) -> None:
    groups = RequiredClaim("realm_access.roles", ("models",), is_list=True)
    deployment = with_tokens(world, required_claims=[groups])
    let_in(world, deployment, "svc-billing")
    world.reconcile_now(deployment)
    published = schemas.require_custom()

    for key in (_POLICY, _ROUTE):
        item = world.cluster.objects[key]
        sent = {name: item[name] for name in ("apiVersion", "kind", "metadata", "spec")}
        assert not list(published[item["apiVersion"], item["kind"]].iter_errors(sent))
