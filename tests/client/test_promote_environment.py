"""`slipway promote-environment`: what staging shows, and the request that carries it to production."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import ChangeRequest
from portal.accounts.models import User
from tests.client.terminal import run, sign_in
from tests.deployments.environments.promoting import check_golden, protect, staged
from tests.deployments.world import World

__all__ = ["sign_in"]
_STAGED = "vision/detector"


@pytest.fixture
def member(world: World, sign_in: Callable[[User], str]) -> World:
    protect(world)
    staged(world)
    check_golden(world)
    sign_in(world.member)
    return world


def test_the_check_shows_what_staging_showed_and_requests_nothing(member: World) -> None:
    before = ChangeRequest.objects.count()

    text = run(["promote-environment", _STAGED, "--check"])
    data = run(["promote-environment", _STAGED, "--check", "--json"]).json

    assert text.code == 0, text.err
    assert text.out.splitlines()[0] == "vision/detector r1: first deployment, ready"
    assert text.out.splitlines()[-1] == "Can be requested."
    assert (data["environment"], data["is_possible"], data["targets"]) == ("production", True, [])
    assert (data["evidence"]["environment"], data["evidence"]["revision_number"]) == ("staging", 1)
    assert ChangeRequest.objects.count() == before


def test_a_name_makes_a_new_deployment_with_the_settings_and_the_evidence(member: World) -> None:
    done = run(["promote-environment", _STAGED, "--name", "live", "--comment", "a week", "--json"])

    change = ChangeRequest.objects.latest("pk")
    assert done.code == 0, done.err
    assert (done.json["id"], done.json["kind"], done.json["deployment"]) == (
        change.pk,
        "deploy",
        "live",
    )
    assert (done.json["environment"], done.json["access"]) == ("production", "open")
    assert done.json["promotion"]["deployment"] == _STAGED
    assert (change.state, change.comment) == ("submitted", "a week")


def test_without_a_name_the_only_deployment_there_gets_a_canary(
    world: World, sign_in: Callable[[User], str]
) -> None:
    live = replace(world.draft("live"), version_id=world.version2.pk)
    change = world.approved(requests.request_deploy(actor=world.member, draft=live))
    world.cluster.make_ready("live-r1")
    world.reconcile_now(deployment_of(change))
    protect(world)
    staged(world)
    check_golden(world)
    sign_in(world.member)
    before = ChangeRequest.objects.count()

    done = run(["promote-environment", _STAGED, "--json"])

    assert done.code == 0, done.err
    assert (done.json["kind"], done.json["deployment"]) == ("canary", "live")
    assert done.json["revision"]["version"] == "detector:1"
    assert ChangeRequest.objects.count() == before + 1


def test_with_nothing_there_yet_a_name_is_required_and_nothing_is_sent(member: World) -> None:
    before = ChangeRequest.objects.count()

    refused = run(["promote-environment", _STAGED])

    assert refused.code == 2
    assert "Name the deployment in production: there is none yet." in refused.err
    assert ChangeRequest.objects.count() == before


def test_without_evidence_the_portal_refuses_with_what_is_missing(
    world: World, sign_in: Callable[[User], str]
) -> None:
    protect(world, golden_required=True)
    staged(world)
    sign_in(world.member)
    before = ChangeRequest.objects.count()

    checked = run(["promote-environment", _STAGED, "--check"])
    refused = run(["promote-environment", _STAGED, "--name", "live"])

    assert checked.code == 1
    assert checked.out.splitlines()[-1] == "Cannot be requested yet."
    assert refused.code == 3
    assert "detector has no golden requests" in refused.err
    assert ChangeRequest.objects.count() == before


def test_a_viewer_is_refused(world: World, sign_in: Callable[[User], str]) -> None:
    staged(world)
    sign_in(world.viewer)

    refused = run(["promote-environment", _STAGED, "--name", "live"])

    assert refused.code == 3
    assert ChangeRequest.objects.count() == 1
