"""Warnings, snooze, dismissal, and requests that are refused or rejected."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.advice.services import answers, refresh
from deployments.changes.services import decisions
from deployments.models import AdviceItem
from deployments.states import AdviceState
from fleet.models import WorkloadHour
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from portal.notifications.models import Notice
from tests.deployments.advice import history
from tests.deployments.refusals import refused
from tests.deployments.world import World

SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def test_an_idle_deployment_is_warned_about_twice_then_stopped_by_request(world: World) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)

    refresh.sweep()
    refresh.sweep()
    assert Notice.objects.filter(event="advice.idle").count() == 1, "once a week"
    for _ in range(2):
        world.clock.move(7 * 24 * 3600)
        history.write(world, deployment, requests=lambda _: 0, hours=7 * 24)
        refresh.sweep()

    assert Notice.objects.filter(event="advice.idle").count() == 2
    item = AdviceItem.objects.get()
    assert (item.kind, item.warnings) == ("idle", 2)
    assert item.saving_amount == item.cost_amount == Decimal("734.38")
    change = answers.request(actor=world.lead2, item_id=item.pk)
    assert change.kind == "stop"
    deployment.refresh_from_db()
    assert not deployment.is_stopped
    world.approved(change)
    deployment.refresh_from_db()
    assert deployment.is_stopped


def test_a_snooze_ends_and_is_not_warned_about_meanwhile(world: World) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item = AdviceItem.objects.get()

    answers.snooze(actor=world.member, item_id=item.pk, days=10, reason="back in March")
    world.clock.move(8 * 24 * 3600)
    history.write(world, deployment, requests=lambda _: 0, hours=8 * 24)
    refresh.sweep()
    item.refresh_from_db()
    assert (item.state, item.warnings) == ("snoozed", 1)
    world.clock.move(3 * 24 * 3600)
    history.write(world, deployment, requests=lambda _: 0, hours=3 * 24)
    refresh.sweep()

    item.refresh_from_db()
    assert (item.state, item.warnings) == ("open", 2)
    snoozed = AuditEvent.objects.get(action="advice.snoozed")
    assert snoozed.reason == "back in March"
    assert snoozed.after["state"] == "snoozed"


def test_a_dismissal_needs_a_reason_and_stays(world: World) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item = AdviceItem.objects.get()
    with refused(world, Invalid):
        answers.dismiss(actor=world.member, item_id=item.pk, reason="  ")

    answers.dismiss(actor=world.member, item_id=item.pk, reason="demo for a customer")
    refresh.sweep()

    assert AdviceItem.objects.get().state == AdviceState.DISMISSED
    with refused(world, Conflict, "advice_state"):
        answers.request(actor=world.member, item_id=item.pk)
    answers.reopen(actor=world.member, item_id=item.pk)
    assert AdviceItem.objects.get().state == AdviceState.OPEN


@pytest.mark.parametrize(("who", "error"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_who_may_not_request_it(world: World, who: str, error: Any) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    actor, item = getattr(world, who), AdviceItem.objects.get()

    for call in (
        lambda: answers.request(actor=actor, item_id=item.pk),
        lambda: answers.snooze(actor=actor, item_id=item.pk, days=7),
        lambda: answers.dismiss(actor=actor, item_id=item.pk, reason="no"),
    ):
        with refused(world, error):
            call()


def test_advice_that_no_longer_holds_requests_nothing(world: World) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item = AdviceItem.objects.get()
    latest = WorkloadHour.objects.order_by("-start")[0]
    WorkloadHour.objects.filter(pk=latest.pk).update(request_success=5)

    with refused(world, Conflict, "advice_gone"):
        answers.request(actor=world.member, item_id=item.pk)
    refresh.sweep()
    assert not AdviceItem.objects.exists()


def test_a_rejected_request_opens_the_advice_again(world: World) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item = AdviceItem.objects.get()
    change = answers.request(actor=world.member, item_id=item.pk)
    decisions.reject(actor=world.lead, change_id=change.pk, comment="still needed")
    refresh.sweep()

    item.refresh_from_db()
    assert (item.state, item.change_id) == ("open", None)


def test_the_page_changes_nothing_for_days_or_a_reason_that_are_none(
    world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    history.age(world, deployment)
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item, client = AdviceItem.objects.get(), signed_in(world.member)

    for days in ("x", "", "0", "91", "9" * 30):
        client.post(f"/advice/{item.pk}/snooze", {"days": days})
    client.post(f"/advice/{item.pk}/dismiss", {"reason": " "})
    refused_state = AdviceItem.objects.get().state
    client.post(f"/advice/{item.pk}/snooze", {"days": "30"})

    assert (refused_state, AdviceItem.objects.get().state) == ("open", "snoozed")
    assert AuditEvent.objects.filter(action="advice.snoozed").count() == 1
