"""The audit page: what one did in a minute is one row, each object has its link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.test import Client

from deployments import audit_actions
from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment
from portal.accounts.models import User
from portal.audit import trail
from portal.audit.models import AuditEvent
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]


def _rows(shown: Part) -> list[Part]:
    """The rows of the table, the newest first."""
    body = next(shown.part("audit-stream").all("tbody"))
    return list(body.all("tr"))


def _limit(world: World, deployment: Deployment, limit: int) -> None:
    with transaction.atomic():
        trail.record(
            actor=world.lead,
            action=audit_actions.TARGET_SET,
            obj=deployment,
            team_slug="vision",
            before={"limit": limit - 1},
            after={"limit": limit},
        )


def test_what_one_did_in_a_minute_is_one_row(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    world.clock.move(600)
    for limit in (2, 3, 4):
        _limit(world, deployment, limit)
        world.clock.move(25)
    world.clock.move(60)
    _limit(world, deployment, 5)

    newest, group, *_ = _rows(page(signed_in(world.admin).get("/audit")))

    assert list(newest.all("details")) == []
    assert newest.terms("limit") == ["4 → 5"]
    earlier = next(group.all("details"))
    assert next(earlier.all("summary")).text == "and 2 more events"
    assert group.terms("limit") == ["2 → 3", "1 → 2", "3 → 4"]
    assert group.text.count("set a standing target of vision/detector") == 3


def test_a_request_and_its_deployment_are_one_object(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    world.clock.move(600)
    requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )
    with transaction.atomic():
        trail.record(
            actor=world.member,
            action=audit_actions.HEALTH_SWITCHED,
            obj=deployment,
            team_slug="vision",
        )
    change = ChangeRequest.objects.order_by("-pk")[0]

    first = _rows(page(signed_in(world.lead).get("/audit")))[0]

    assert first.link("vision/detector") == "/vision/deployments/detector"
    assert first.link("scaling of vision/detector") == f"/approvals/{change.pk}"


def test_objects_are_linked_for_those_who_may_see_them(world: World, signed_in: SignIn) -> None:
    world.serving()
    with transaction.atomic():
        for obj in (world.version1, world.version1.model, world.team, world.viewer):
            trail.record(
                actor=world.admin,
                action=audit_actions.DEPLOYMENT_STATE,
                obj=obj,
                team_slug="vision",
            )

    pages = [page(signed_in(user).get("/audit")) for user in (world.admin, world.lead)]
    of_admin, of_lead = (
        {link.attributes["href"] for link in shown.part("audit-stream").all("a")} for shown in pages
    )

    of_team = {"/vision/models/detector/1", "/vision/models/detector", "/admin/teams/vision"}
    assert of_team <= of_lead
    assert of_team <= of_admin
    assert of_admin - of_lead == {"/admin/people/viewer"}


def test_a_structure_is_folded_and_a_filter_still_finds_it(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    world.clock.move(600)
    with transaction.atomic():
        trail.record(
            actor=world.lead,
            action=audit_actions.TARGET_SET,
            obj=deployment,
            team_slug="vision",
            after={"steps": [{"weight": 10, "soak_seconds": 60}]},
        )

    (row,) = _rows(page(signed_in(world.lead).get("/audit?action=deployment.target_set")))

    folded = next(row.all("details"))
    assert next(folded.all("summary")).text == "set"
    assert "weight 10; soak seconds 60" in folded.text


def test_the_number_of_queries_does_not_grow_with_the_events(
    world: World, signed_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    deployment = world.serving()
    client = signed_in(world.lead)
    client.get("/audit")
    with django_assert_max_num_queries(30) as few:
        client.get("/audit")
    count = AuditEvent.objects.count()
    for limit in range(20):
        _limit(world, deployment, limit)

    with django_assert_max_num_queries(30) as many:
        client.get("/audit")

    assert AuditEvent.objects.count() == count + 20
    assert len(many) == len(few)
