"""A pipeline calls deployments that need a key with one of its own: made, brought to them, rotated and ended."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.callers.selectors import keys as key_selectors
from deployments.callers.services import keys
from deployments.changes.selectors.subjects import pipeline_of
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import CallerKey, ChangeRequest, Deployment, Pipeline, PipelineKey
from deployments.pipelines.services import requests, router_keys
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import OPTION_NEEDS
from fleet.models import Cluster
from portal.core.errors import Invalid, NotFound
from tests.deployments import pipelines_world
from tests.deployments.callers.test_keys import keyed, make
from tests.deployments.pipelines_world import ENSEMBLE, approve, node, step
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_SECRET = ("Secret", "vision", "both-pipeline-key")
_FILTER = ("HTTPRouteFilter", "vision", "both")
_NEEDS = OPTION_NEEDS["protected-pipeline"][0]
_OPEN_ONLY = {"nodes": [node("ensemble", step("classifier"), step("classifier", name="again"))]}


def able(world: World, without: Feature | None = None, name: str = "") -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    found = Capabilities.from_json(row.capabilities)
    features = {**found.features, **{need: Feature(is_there=True) for need in _NEEDS}}
    if without is not None:
        features[name] = without
    row.capabilities = Capabilities(features=features).to_json()
    row.save()


def held(world: World, deployment: str = "detector") -> dict[str, str]:
    """What its gateway accepts, by caller."""
    data = world.cluster.objects["Secret", "vision", f"{deployment}-callers"]["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def sent(world: World) -> str:
    """What the gateway puts on requests of the pipeline."""
    return base64.b64decode(world.cluster.objects[_SECRET]["data"]["credential"]).decode()


def pass_over(world: World, pipeline: Pipeline, rounds: int = 3) -> Pipeline:
    for _ in range(rounds):
        world.work()
        pipelines_world.reconcile_now(pipeline, rounds=1)
    pipeline.refresh_from_db()
    return pipeline


def serving(world: World, spec: Any = None) -> Pipeline:
    return world.play(f"pipeline of keyed deployments {spec}", lambda: _serve(world, spec))


def _serve(world: World, spec: Any) -> Pipeline:
    keyed(world)
    able(world)
    change = pipelines_world.request_change(world, spec)
    approve(world.lead, change)
    pipeline = pass_over(world, pipeline_of(change))
    pipelines_world.start_router(world, pipeline)
    return pass_over(world, pipeline)


def filters(world: World) -> list[dict[str, Any]]:
    route = world.cluster.objects["HTTPRoute", "vision", "both"]
    return list(route["spec"]["rules"][0]["filters"])


def test_the_gateway_sends_a_key_that_the_deployment_accepts_and_nobody_sees(world: World) -> None:
    pipeline = serving(world)

    row = CallerKey.objects.get(deployment__name="detector")
    assert pipeline.state == "ready"
    assert held(world) == {f"pipeline.both.{row.pk}": sent(world)}
    assert [item["type"] for item in filters(world)] == [
        "URLRewrite",
        "RequestHeaderModifier",
        "ExtensionRef",
    ]
    assert world.cluster.objects[_FILTER]["spec"]["credentialInjection"] == {
        "header": "X-Api-Key",
        "overwrite": True,
        "credential": {"valueRef": {"name": "both-pipeline-key"}},
    }
    _, listed = key_selectors.list_visible(actor=world.lead, deployment_id=row.deployment_id)
    assert listed == []
    for change in (keys.revoke, keys.rotate):
        with pytest.raises(NotFound):
            change(actor=world.lead, deployment_id=row.deployment_id, key_id=row.pk)
    with pytest.raises(Invalid):
        make(world, row.deployment, "pipeline.both")
    client = Client()
    client.force_login(world.lead)
    shown = page(client.get("/vision/deployments/detector/callers")).text
    assert "Anyone who reaches the pipeline both can call this deployment through it" in shown
    assert "pipeline.both" not in shown


def test_it_is_rotated_with_both_keys_accepted_meanwhile(world: World) -> None:
    pipeline = serving(world)
    first = sent(world)

    world.clock.move((router_keys.ROTATE_AFTER + timedelta(minutes=1)).total_seconds())
    pipelines_world.reconcile_now(pipeline, rounds=1)
    before = sent(world)
    pass_over(world, pipeline)
    second = sent(world)
    during = set(held(world).values())
    world.clock.move((router_keys.OVERLAP + timedelta(minutes=1)).total_seconds())
    pass_over(world, pipeline)

    assert (before, second != first) == (first, True)
    assert during == {first, second}
    assert set(held(world).values()) == {second}
    assert PipelineKey.objects.filter(ended_at=None).count() == 1
    assert not CallerKey.objects.exclude(ended_at=None).exclude(sealed="").exists()


@pytest.mark.parametrize("how", ["stop", "retire", "change"])
def test_its_key_ends_with_the_pipeline(world: World, how: str) -> None:
    pipeline = serving(world)
    if how == "stop":
        change = requests.request_stop(actor=world.member, pipeline_id=pipeline.pk)
        approve(world.lead, change)
    elif how == "retire":
        change = requests.request_retire(actor=world.member, pipeline_id=pipeline.pk)
        approve(world.lead, change)
    else:
        change = requests.request_change(
            actor=world.member, pipeline_id=pipeline.pk, spec=_OPEN_ONLY
        )
        approve(world.lead, change)

    pass_over(world, pipeline, rounds=7)

    assert held(world) == {}
    assert not {_SECRET, _FILTER} & set(world.cluster.objects)
    assert not PipelineKey.objects.filter(ended_at=None).exists()
    if how == "change":
        assert [item["type"] for item in filters(world)] == ["URLRewrite"]


@pytest.mark.parametrize("name", _NEEDS[2:])
@pytest.mark.parametrize("is_there", [False, None])
def test_where_the_cluster_cannot_the_refusal_says_why(
    world: World, name: str, is_there: bool | None
) -> None:
    keyed(world)
    able(world, Feature(is_there=is_there, why="Because it rains"), name)

    with pytest.raises(
        Invalid, match=r"detector needs a key, and pipelines on eks-test have none.*rains"
    ):
        pipelines_world.request_change(world)
    pipelines_world.request_change(world, _OPEN_ONLY)


def test_approvers_read_what_is_reached_through_it_also_when_a_change_adds_it(world: World) -> None:
    keyed(world)
    able(world)
    change = pipelines_world.request_change(world, _OPEN_ONLY)
    approve(world.lead, change)
    pipeline = pass_over(world, pipeline_of(change))
    pipelines_world.start_router(world, pipeline)
    pass_over(world, pipeline)
    api = APIClient()
    api.force_authenticate(world.lead)

    added = requests.request_change(actor=world.member, pipeline_id=pipeline.pk, spec=ENSEMBLE)

    assert api.get(f"/api/v1/pipeline-changes/{added.pk}").data["opens_address"] is True
    checks = {check["name"]: check["detail"] for check in added.checks}
    assert "Anyone who reaches the pipeline can call detector through it." in checks["Keys"]
    assert not PipelineKey.objects.exists()
    approve(world.lead, added)
    pass_over(world, pipeline, rounds=6)
    assert set(held(world).values()) == {sent(world)}
    assert ChangeRequest.objects.get(pk=added.pk).state == "done"
    assert Deployment.objects.filter(name="detector", is_retired=False).count() == 1


def test_an_open_deployment_beside_it_never_sees_the_key(world: World) -> None:
    pipeline = serving(world)
    Deployment.objects.filter(name="classifier").update(candidate_revision=None)
    row = Deployment.objects.get(name="classifier")
    stable = row.stable_revision
    assert stable is not None
    stable.spec = {**stable.spec, "network": {"access": "open"}}
    stable.save()

    def removed() -> list[Any]:
        rules = RenderedDeployment(Deployment.objects.get(pk=row.pk)).route["spec"]["rules"]
        modifiers = [
            [
                item["requestHeaderModifier"]
                for item in rule.get("filters", ())
                if len(item) > 1 and "requestHeaderModifier" in item
            ]
            for rule in rules
            if "backendRefs" in rule
        ]
        assert len({len(found) for found in modifiers}) == 1
        return modifiers[0]

    pass_over(world, pipeline)
    during = removed()
    approve(world.lead, requests.request_stop(actor=world.member, pipeline_id=pipeline.pk))
    pass_over(world, pipeline, rounds=7)

    assert during == [{"remove": ["X-Api-Key"]}]
    assert removed() == []


def test_the_form_says_why_there_are_too_few(world: World) -> None:
    keyed(world)
    client = Client()
    client.force_login(world.member)

    def shown() -> str:
        return page(client.get("/vision/pipelines/new")).text

    alone = shown()
    pipelines_world.members(world)
    one = shown()
    able(world)
    both = shown()

    assert "It could call none: detector needs a key, and pipelines on eks-test have none" in alone
    assert "It could call only classifier: detector needs a key" in one
    assert "Only classifier serves there" not in one
    assert "needs a key" not in both
