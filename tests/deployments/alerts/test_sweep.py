"""Alerts open once, end once and are told once, whatever dies between."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.alerts.services import silences, sweep
from deployments.models import Alert, Deployment
from fleet.models import Cluster
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from portal.notifications import services as notifications
from tests.deployments.alerts.observed import alerts, told, unreachable
from tests.deployments.refusals import refused
from tests.deployments.world import World

OPENED = ("alert.opened", "Cluster eks-test is unreachable")
ENDED = ("alert.ended", "Ended: Cluster eks-test is unreachable")


def test_one_alert_from_its_opening_to_its_end(world: World) -> None:
    world.serving()
    unreachable(world)

    for _ in range(3):
        sweep.sweep()

    row = Alert.objects.get()
    assert (row.kind, row.opened_at, row.told_at) == (
        "cluster_unreachable",
        world.clock.at,
        world.clock.at,
    )
    assert row.message == "It has not answered for 5 minutes: no route to host."
    assert told() == [OPENED]
    unreachable(world, is_reachable=True)
    world.clock.move(60)
    for _ in range(3):
        sweep.sweep()

    assert alerts() == [("cluster_unreachable", "Cluster eks-test is unreachable", False)]
    assert told() == [OPENED, ENDED]
    world.clock.move(3600)
    unreachable(world)
    sweep.sweep()
    assert [is_open for _, _, is_open in alerts()] == [False, True]
    assert told() == [OPENED, ENDED, OPENED]


def test_what_is_not_known_neither_opens_nor_ends(world: World) -> None:
    world.serving()
    Cluster.objects.update(is_reachable=None)
    sweep.sweep()
    assert alerts() == []
    unreachable(world)
    sweep.sweep()
    Cluster.objects.update(is_reachable=None)

    sweep.sweep()

    assert Alert.objects.get().ended_at is None


@pytest.mark.parametrize("step", ["open", "end"])
def test_a_worker_that_dies_before_it_notified_leaves_that_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    world.serving()
    unreachable(world)
    if step == "end":
        sweep.sweep()
        unreachable(world, is_reachable=True)

    def die(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(notifications, "notify", die)
        with pytest.raises(KeyboardInterrupt):
            sweep.sweep()
    before = told()
    sweep.sweep()
    sweep.sweep()

    assert before == ([] if step == "open" else [OPENED])
    assert told() == ([OPENED] if step == "open" else [OPENED, ENDED])
    assert Alert.objects.count() == 1


def test_two_workers_at_once_open_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.serving()
    unreachable(world)
    real, is_first = sweep._open, [True]

    def other_first(*given: Any) -> None:
        if is_first.pop() if is_first else False:
            sweep.sweep()
        real(*given)

    monkeypatch.setattr(sweep, "_open", other_first)
    sweep.sweep()

    assert Alert.objects.count() == 1
    assert told() == [OPENED]


def test_a_stopped_deployment_ends_its_alerts(world: World) -> None:
    world.serving()
    unreachable(world)
    sweep.sweep()
    Deployment.objects.update(is_stopped=True)

    sweep.sweep()

    assert [is_open for _, _, is_open in alerts()] == [False]


def test_a_silence_has_an_end_and_a_reason(world: World) -> None:
    world.serving()
    unreachable(world)
    sweep.sweep()
    row = Alert.objects.get()

    silences.silence(actor=world.lead, alert_id=row.pk, hours=2, reason="known, a move")

    event = AuditEvent.objects.get(action="alert.silenced")
    assert event.after["reason"] == "known, a move"
    # It ends and opens anew while it is silent: nobody is told of either.
    unreachable(world, is_reachable=True)
    sweep.sweep()
    unreachable(world)
    sweep.sweep()
    assert told() == [OPENED]
    newest = Alert.objects.order_by("-id")[0]
    assert (newest.silence_reason, newest.silenced_by) == ("known, a move", world.lead)
    world.clock.move(2 * 3600)
    sweep.sweep()
    assert told() == [OPENED, OPENED]


def test_who_may_not_silence_changes_nothing(world: World) -> None:
    world.serving()
    unreachable(world)
    sweep.sweep()
    pk = Alert.objects.get().pk

    with refused(world, Forbidden):
        silences.silence(actor=world.member, alert_id=pk, hours=1, reason="x")
    with refused(world, NotFound):
        silences.silence(actor=world.stranger, alert_id=pk, hours=1, reason="x")
    with refused(world, Conflict, "not_silenced"):
        silences.unsilence(actor=world.lead, alert_id=pk)
    for hours, reason in ((0, "x"), (721, "x"), (1, " ")):
        with refused(world, Invalid):
            silences.silence(actor=world.lead, alert_id=pk, hours=hours, reason=reason)
    Alert.objects.update(ended_at=world.clock.at)
    with refused(world, Conflict, "ended"):
        silences.silence(actor=world.lead, alert_id=pk, hours=1, reason="x")


def test_the_sweep_needs_no_more_queries_for_more_deployments(
    world: World, django_assert_max_num_queries: Any
) -> None:
    world.serving()
    world.serving(name="other")

    with django_assert_max_num_queries(19):
        sweep.sweep()
