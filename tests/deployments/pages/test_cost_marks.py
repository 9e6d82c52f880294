"""Releases and scalings stand on the charts of what they cost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.pages.selectors import cost_marks
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.ledger import spend
from tests.deployments.signed_in import start_canary
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
_DAY = timedelta(days=1)


def texts(deployment: Deployment, start: datetime, end: datetime) -> list[str]:
    names = [(deployment.team.slug, deployment.name)]
    return [mark.text for mark in cost_marks.list_marks(names, start, end)]


def test_applied_changes_and_ended_rollouts_are_marks_in_order(world: World) -> None:
    deployment, rollout = start_canary(world)
    now = clock.now()
    start, end = now - 10 * _DAY, now + _DAY
    deploy, canary = ChangeRequest.objects.order_by("pk")
    ChangeRequest.objects.filter(pk=deploy.pk).update(finished_at=now - 5 * _DAY, state="done")
    ChangeRequest.objects.filter(pk=canary.pk).update(finished_at=now - 2 * _DAY, state="done")

    assert texts(deployment, start, end) == ["r1 deployed", "r2 canary"]
    Rollout.objects.filter(pk=rollout.pk).update(phase="completed", finished_at=now - _DAY)
    assert texts(deployment, start, end) == ["r1 deployed", "r2 canary", "r2 promoted"]
    assert texts(deployment, now - 2 * _DAY, now - _DAY) == ["r2 canary"]
    ChangeRequest.objects.filter(pk=canary.pk).update(state="rejected")
    Rollout.objects.filter(pk=rollout.pk).update(phase="aborted")
    assert texts(deployment, start, end) == ["r1 deployed", "r2 aborted"]
    assert cost_marks.list_marks([("nlp", deployment.name)], start, end) == []
    assert cost_marks.list_marks([], start, end) == []


@pytest.mark.parametrize(
    ("kind", "changed", "text"),
    [
        ("scale", {"scale": {"min_replicas": 2, "max_replicas": 4}}, "scaled to 2 to 4 replicas"),
        ("scale", {"scale": {"min_replicas": 1, "max_replicas": 1}}, "scaled to 1 replica"),
        ("roll_back", {"restored_number": 1}, "rolled back to r1"),
        ("stop", {}, "stopped"),
        ("start", {}, "started"),
    ],
)
def test_each_kind_says_what_it_did(
    world: World, kind: str, changed: dict[str, Any], text: str
) -> None:
    deployment = world.serving()
    now = clock.now()
    ChangeRequest.objects.update(kind=kind, state="done", finished_at=now, **changed)

    assert texts(deployment, now, now + _DAY) == [text]


def test_both_charts_have_them(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    now = clock.now()
    spend(deployment, now - timedelta(hours=2), "2")
    ChangeRequest.objects.update(state="done", finished_at=now - timedelta(hours=2))
    client = signed_in(world.viewer)

    tab = page(client.get(f"/vision/deployments/{deployment.name}/cost"))
    costs = page(client.get("/costs?group=deployment&range=7d"))
    by_team = page(client.get("/costs?range=7d"))

    assert "r1 deployed" in tab.text
    assert "r1 deployed" in costs.text
    assert "r1 deployed" not in by_team.text
