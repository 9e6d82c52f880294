"""Pipelines call the addresses of deployments without a key, so these stay open."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Pipeline
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import requests as pipeline_requests
from deployments.pipelines.services.requests import PipelineDraft
from deployments.spec.domain.serving_spec import Network
from deployments.states import Environment
from fleet.models import Cluster
from portal.core.errors import Conflict
from tests.deployments import pipelines_world
from tests.deployments.callers.test_keys import keyed
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


def test_a_deployment_with_keys_is_no_member(world: World) -> None:
    keyed(world)

    members = pipelines.members_of(
        team=world.team, cluster_id=world.cluster_id, environment=Environment.PRODUCTION
    )

    assert members["detector"].why_not == "detector needs a key, and pipelines have none."


def test_a_deployment_of_a_pipeline_does_not_get_keys(world: World) -> None:
    deployment = world.serving()
    Cluster.objects.filter(pk=world.cluster_id).update(serving={"pod_security": "baseline"})
    step = {"deployment": "detector"}
    nodes = [{"name": "root", "kind": "ensemble", "steps": [step, {**step, "name": "again"}]}]
    pipeline_requests.request_create(
        actor=world.member,
        draft=PipelineDraft(
            team="vision",
            cluster_id=world.cluster_id,
            environment=Environment.PRODUCTION,
            name="both",
            spec={"nodes": nodes},
        ),
    )
    changes = ChangeRequest.objects.count()
    assert deployment.stable_revision is not None
    spec = world.draft(network=Network(access="keys")).spec

    with pytest.raises(Conflict, match="The pipeline both calls vision/detector"):
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=_STEPS,
            spec=spec,
        )

    assert (ChangeRequest.objects.count(), Pipeline.objects.count()) == (changes, 1)


@pytest.mark.parametrize(("kind", "opens"), [("create", True), ("start", True), ("change", False)])
def test_the_approver_of_a_pipeline_reads_that_its_address_is_open(
    world: World, kind: str, opens: bool
) -> None:
    change = pipelines_world.request_change(world)
    ChangeRequest.objects.filter(pk=change.pk).update(kind=kind)
    browser, api = Client(), APIClient()
    browser.force_login(world.lead)
    api.force_authenticate(world.lead)

    request = page(browser.get(f"/approvals/{change.pk}")).text
    inbox = page(browser.get("/approvals")).text
    answer = api.get(f"/api/v1/pipeline-changes/{change.pk}")

    assert ("Everyone who reaches the gateway gets answers, without a key." in request) is opens
    assert ("open to everyone who reaches the gateway" in inbox) is opens
    assert answer.data["opens_address"] is opens
