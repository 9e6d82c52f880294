"""Pipelines over open and closed deployments: what is refused, and what approvers read."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.models import CallerKey, ChangeRequest, Deployment, Pipeline
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import requests as pipeline_requests
from deployments.pipelines.services.requests import PipelineDraft
from deployments.spec.domain.serving_spec import Network
from deployments.states import Environment
from fleet.models import Cluster
from portal.core.errors import Conflict
from tests.deployments import pipelines_world
from tests.deployments.callers.test_keys import keyed
from tests.deployments.pipelines.test_router_keys import able
from tests.deployments.pipelines_world import approve
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


def test_a_deployment_with_keys_is_no_member_where_that_cannot_be(world: World) -> None:
    keyed(world)

    members = pipelines.members_of(
        team=world.team, cluster_id=world.cluster_id, environment=Environment.PRODUCTION
    )

    assert members["detector"].why_not.startswith(
        "detector needs a key, and pipelines on eks-test have none. "
    )


def _close(world: World, deployment: Deployment, access: str) -> ChangeRequest:
    stable = deployment.stable_revision
    assert stable is not None
    network = Network(access=access, token_issuer="idp" if access == "jwt" else "")
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=_STEPS,
        spec=world.draft(network=network).spec,
    )


def _in_a_pipeline(world: World) -> Deployment:
    deployment = world.serving()
    Cluster.objects.filter(pk=world.cluster_id).update(serving={"pod_security": "baseline"})
    one = {"deployment": "detector"}
    nodes = [{"name": "root", "kind": "ensemble", "steps": [one, {**one, "name": "again"}]}]
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
    return deployment


@pytest.mark.parametrize(
    ("access", "is_able", "why"),
    [
        ("keys", False, "detector needs a key, and pipelines on eks-test have none"),
        ("jwt", True, "detector needs a token of an identity provider"),
    ],
)
def test_a_deployment_of_a_pipeline_is_not_closed_where_it_could_not_be_called(
    world: World, access: str, is_able: bool, why: str
) -> None:
    deployment = _in_a_pipeline(world)
    if is_able:
        able(world)
    changes = ChangeRequest.objects.count()

    with pytest.raises(Conflict, match=f"The pipeline both calls vision/detector.*{why}"):
        _close(world, deployment, access)

    assert (ChangeRequest.objects.count(), Pipeline.objects.count()) == (changes, 1)


def test_a_deployment_of_a_pipeline_gets_keys_and_the_pipeline_has_one_before(world: World) -> None:
    deployment = _in_a_pipeline(world)
    able(world)
    pipeline = Pipeline.objects.get()
    approve(world.lead, ChangeRequest.objects.get(pipeline=pipeline))
    pipelines_world.reconcile_now(pipeline)
    pipelines_world.start_router(world, pipeline)
    assert pipelines_world.reconcile_now(pipeline).state == "ready"
    assert not CallerKey.objects.exists()

    _close(world, deployment, "keys")
    pipelines_world.reconcile_now(pipeline)

    assert CallerKey.objects.get(ended_at=None).deployment == deployment
    assert ("Secret", "vision", "both-pipeline-key") in world.cluster.objects


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

    assert ("Anyone who reaches the gateway can call it, without a key." in request) is opens
    assert ("public, no key" in inbox) is opens
    assert answer.data["opens_address"] is opens
