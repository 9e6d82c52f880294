"""A verdict that got worse: who is notified, and which live deployments it touches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.gateways import scanners
from deployments.registry.selectors import quarantined_in_use
from deployments.registry.services.scans import rescan, scanning
from deployments.states import DeploymentState, VersionState
from portal.accounts.models import User
from portal.core import clock
from portal.notifications.models import Channel, Delivery
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db
API = "/api/v1/versions/quarantined-in-use"


def scanned_worse(world: World, monkeypatch: pytest.MonkeyPatch) -> ModelVersion:
    """A new engine blocks version 1, and only that."""
    ModelVersion.objects.update(format="onnx", ready_at=clock.now(), scan_engines="old")
    engines = {**scanners.engines(), scanners.MODELSCAN: "99"}
    monkeypatch.setattr(scanners, "engines", lambda: engines)
    blocked = scanning.report_of([scanning.unreadable("detector.onnx", "a new rule")])
    clean = scanning.report_of([])
    reports = iter([blocked, clean])
    monkeypatch.setattr(scanning, "scan", lambda _: next(reports))
    assert rescan.sweep() == 2
    world.version1.refresh_from_db()
    assert world.version1.state == VersionState.QUARANTINED
    return world.version1


def channel_of(user: User) -> Channel:
    return Channel.objects.create(
        user=user, name=user.username, kind="webhook", created_by=user, created_at=clock.now()
    )


def test_live_deployments_of_the_version_are_listed_and_continue(
    world: World, monkeypatch: pytest.MonkeyPatch, signed_in: Callable[[User], Client]
) -> None:
    deployment = world.serving()
    assert quarantined_in_use.list_uses(actor=world.member) == []
    version = scanned_worse(world, monkeypatch)

    deployment = world.reconcile_now(deployment)

    assert deployment.state == DeploymentState.READY
    (row,) = signed_in(world.viewer).get(API).json()
    assert row == {
        "version_id": version.pk,
        "version": "detector:1",
        "team": "vision",
        "reason": version.state_reason,
        "scan_engines": version.scan_engines,
        "deployment_id": deployment.pk,
        "deployment": "detector",
        "deployment_state": "ready",
        "cluster": "eks-test",
    }
    assert "It serves detector, which continue." in row["reason"]
    shown = page(signed_in(world.admin).get("/quarantined-in-use")).text
    assert "1 deployment" in shown
    assert "a new rule" in shown
    assert signed_in(world.stranger).get(API).json() == []
    assert "No live deployment" in page(signed_in(world.stranger).get("/quarantined-in-use")).text


def test_what_ended_is_not_listed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = world.serving()
    scanned_worse(world, monkeypatch)
    assert len(quarantined_in_use.list_uses(actor=world.admin)) == 1

    type(deployment).objects.update(is_retired=True)

    assert quarantined_in_use.list_uses(actor=world.admin) == []


def test_platform_admins_are_notified_besides_the_team(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()
    Delivery.objects.all().delete()
    people = [world.member, world.admin, world.stranger]
    channels = {user.username: channel_of(user) for user in people}

    scanned_worse(world, monkeypatch)

    notified = set(Delivery.objects.values_list("channel_id", flat=True))
    assert notified == {channels["member"].pk, channels["admin"].pk}
