"""From the evidence to the bill: advice, one click, approval, and the month after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.services import answers, refresh
from deployments.models import AdviceItem, ChangeRequest, Deployment
from deployments.states import AdviceState, ChangeState
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster, InstancePrice, LedgerKind, LedgerRow, Node
from portal.accounts.models import User
from portal.core.errors import Conflict, NotFound
from tests.deployments.advice import history
from tests.deployments.refusals import refused
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
pytestmark = pytest.mark.django_db


def _item(kind: str) -> AdviceItem:
    return AdviceItem.objects.get(kind=kind)


def test_fewer_replicas_from_the_page_to_the_bill(world: World, signed_in: SignIn) -> None:
    deployment = world.serving(min_replicas=3, max_replicas=3)
    history.age(world, deployment)
    history.write(world, deployment, replicas=3, busy=0.2)
    refresh.sweep()
    item = _item("fewer-replicas")
    # Three replicas, each 20% busy: 0.6 of a GPU, so one replica at 70% utilisation.
    assert item.saving_amount == (Decimal("1.006") * 2 * 730).quantize(Decimal("0.01"))
    assert item.cost_amount == (Decimal("1.006") * 3 * 730).quantize(Decimal("0.01"))

    shown = page(signed_in(world.member).get("/advice"))
    answer = signed_in(world.member).post(f"/advice/{item.pk}/request")

    assert "$1,469 a month, $17,625 a year" in shown.text  # a year: 1,468.76 times 12
    row, *_ = shown.rows
    assert (row["$ a month"], row["$ a year"]) == ("$1,469", "$17,625")
    assert row["Where"] == "vision/detector"
    assert "Fewer replicas · medium risk · measured" in row["What to do"]
    unfolded = shown.group("Run 1 replica instead of 3: the GPUs were 20% used in the last week.")
    assert unfolded.term("GPU utilisation, 7 days") == "20%"
    assert "Request change" in unfolded.buttons
    assert unfolded.link("What-if") == "/what-if?deployment=vision/detector"
    change = ChangeRequest.objects.get(kind="scale")
    assert answer.status_code == 302
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert (change.scale["min_replicas"], change.scale["max_replicas"]) == (1, 1)
    assert change.comment.startswith("Run 1 replica instead of 3")
    assert "Saves $1,469 a month, $17,625 a year" in change.comment
    assert change.checks
    assert change.state == ChangeState.SUBMITTED
    deployment.refresh_from_db()
    assert deployment.scale == {}, "nothing is applied without approval"

    world.approved(change)
    world.reconcile_now(deployment)
    change.refresh_from_db()
    assert change.state == ChangeState.DONE, change.state_reason
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.APPLIED
    assert item.realised_amount is None, "no hour after the change is sealed yet"

    world.clock.move(32 * 24 * 3600)
    history.write(world, deployment, replicas=1, hours=32 * 24 - 1, busy=0.6)
    refresh.sweep()

    item.refresh_from_db()
    assert item.state == AdviceState.CHECKED
    assert item.realised_hours == 30 * 24
    assert item.realised_amount == item.saving_amount
    viewer = signed_in(world.viewer)
    assert page(viewer.get("/advice")).link("1 requested") == "?show=followed"
    assert "100% of the promise" in page(viewer.get("/advice?show=followed")).text
    assert not AdviceItem.objects.filter(kind="fewer-replicas", state="open").exists()


def test_a_change_that_saved_less_says_so(world: World) -> None:
    item, deployment = _applied(world)

    world.clock.move(32 * 24 * 3600)
    history.write(world, deployment, replicas=2, hours=32 * 24 - 1)
    refresh.sweep()

    item.refresh_from_db()
    # Two replicas ran where one was promised.
    assert item.realised_amount == item.saving_amount / 2


@pytest.mark.parametrize(("hours", "realised"), [(0, None), (10 * 24, "whole")])
def test_hours_that_are_never_sealed_do_not_keep_it_open(
    world: World, hours: int, realised: str | None
) -> None:
    item, deployment = _applied(world)
    world.clock.move((hours + 1) * 3600)
    history.write(world, deployment, replicas=1, hours=hours)

    world.clock.move((32 * 24 - hours) * 3600)
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.APPLIED
    world.clock.move(7 * 24 * 3600)
    refresh.sweep()

    item.refresh_from_db()
    assert (item.state, item.realised_hours) == (AdviceState.CHECKED, hours)
    assert item.realised_amount == (item.saving_amount if realised else None)


@pytest.mark.parametrize(
    "gap",
    [
        pytest.param({"is_observed": lambda at: at.hour > 1}, id="two hours of each day not read"),
        pytest.param({"hours": 7 * 24 - 1}, id="a week but for one hour"),
        pytest.param({"price": Decimal(0)}, id="without a price"),
    ],
)
def test_no_advice_on_gaps(world: World, gap: dict[str, Any]) -> None:
    deployment = world.serving(min_replicas=2, max_replicas=2)
    history.age(world, deployment)
    history.write(world, deployment, replicas=2, requests=lambda _: 0, **gap)

    refresh.sweep()

    assert not AdviceItem.objects.exists()


def test_one_hour_that_was_not_read_may_have_had_requests(world: World) -> None:
    deployment = _serving(world, "detector")
    latest = world.clock.at - timedelta(hours=5)
    history.write(world, deployment, requests=lambda _: 0, is_observed=lambda at: at < latest)

    refresh.sweep()

    assert not AdviceItem.objects.filter(kind="idle").exists()


def test_a_change_starts_the_week_anew(world: World) -> None:
    deployment = world.serving(min_replicas=2, max_replicas=2)
    history.age(world, deployment, days=6)
    history.write(world, deployment, replicas=2)

    refresh.sweep()

    assert not AdviceItem.objects.exists()


def test_a_node_that_nobody_uses(world: World, signed_in: SignIn) -> None:
    _unused(world)
    refresh.sweep()

    item = AdviceItem.objects.get()
    assert (item.kind, item.subject, item.saving_amount) == (
        "unused-node",
        "eks-test/node-3",
        Decimal("734.38"),
    )
    assert "eks-test/node-3" in signed_in(world.admin).get("/advice").content.decode()
    assert "eks-test/node-3" not in signed_in(world.lead).get("/advice").content.decode()
    with refused(world, NotFound):
        answers.snooze(actor=world.lead, item_id=item.pk, days=7)
    with refused(world, Conflict, "no_change"):
        answers.request(actor=world.admin, item_id=item.pk)


def test_one_page_names_five_kinds_and_a_click_requests_a_canary_on_spot(
    world: World, signed_in: SignIn
) -> None:
    _with_keda_and_spot(world)
    many = world.serving(name="many", min_replicas=2, max_replicas=2)
    history.write(world, many, replicas=2, busy=0.2)
    history.write(world, _serving(world, "quiet"), requests=lambda _: 0)
    history.write(world, _serving(world, "office"), requests=_at_daytime, busy=0.5)
    history.age(world, many)
    _unused(world)

    refresh.sweep()

    kinds = sorted(AdviceItem.objects.values_list("subject", "kind"))
    assert kinds == [
        ("eks-test/node-3", "unused-node"),
        ("vision/many", "fewer-replicas"),
        ("vision/many", "spot"),
        ("vision/office", "office-hours"),
        ("vision/quiet", "idle"),
    ]
    shown = page(signed_in(world.admin).get("/advice")).text
    for title in ("Unused node", "Fewer replicas", "Spot nodes", "Office hours", "Idle deployment"):
        assert title in shown, title
    # The best of each: the two kinds of advice on one deployment do not add up.
    best = 2 * Decimal("734.38") + Decimal("884.76") + _item("office-hours").saving_amount
    assert f"{best * 12:,.0f}" in shown

    change = answers.request(actor=world.member, item_id=_item("spot").pk)

    assert change.kind == "canary"
    assert change.revision is not None
    assert change.revision.version == many.stable_revision.version
    assert change.revision.spec["placement"]["capacity"] == "spot"
    assert change.revision.spec["min_replicas"] == 2
    with refused(world, Conflict, "change_open"):
        answers.request(actor=world.lead, item_id=_item("fewer-replicas").pk)


def test_the_api_lists_answers_and_requests(world: World, signed_in: SignIn) -> None:
    deployment = _serving(world, "detector")
    history.write(world, deployment, requests=lambda _: 0)
    refresh.sweep()
    item = AdviceItem.objects.get()
    client, stranger = APIClient(), APIClient()
    client.force_authenticate(world.member)
    stranger.force_authenticate(world.stranger)

    [listed] = client.get("/api/v1/advice?team=vision").json()
    assert (listed["kind"], listed["saving_amount"]) == ("idle", "734.38")
    assert listed["saving_year_amount"] == "8812.56"
    assert listed["evidence"] == item.evidence
    assert item.evidence == [
        {"name": "Requests, 7 days", "value": "0"},
        {"name": "Hours observed", "value": "168 of 168"},
        {"name": "Last 7 days cost", "value": "$169"},
    ]
    lines = [EvidenceLine.from_json(row) for row in item.evidence]
    shown = page(signed_in(world.member).get("/advice"))
    assert [shown.term(line.name) for line in lines] == [line.value for line in lines]
    assert stranger.get("/api/v1/advice").json() == []
    none = client.post(f"/api/v1/advice/{item.pk}/snooze", {"days": 0}, format="json")
    assert none.status_code == 422
    snoozed = client.post(f"/api/v1/advice/{item.pk}/snooze", {"days": 7}, format="json")
    assert snoozed.json()["state"] == "snoozed"
    made = client.post(f"/api/v1/advice/{item.pk}/request", {}, format="json")
    assert (made.status_code, made.json()["kind"]) == (201, "stop")


def _serving(world: World, name: str) -> Deployment:
    deployment = world.serving(name=name)
    history.age(world, deployment)
    return deployment


def _with_keda_and_spot(world: World) -> None:
    cluster = Cluster.objects.get()
    known = Capabilities.from_json(cluster.capabilities)
    features = {**known.features, "keda": Feature(is_there=True)}
    cluster.capabilities = replace(known, features=features).to_json()
    cluster.save()
    Node.objects.filter(name="node-2").update(capacity_type="spot")
    listed = InstancePrice.objects.get()
    listed.pk, listed.capacity_type, listed.usd_per_hour_amount = None, "spot", Decimal("0.4")
    listed.save()


def _unused(world: World) -> None:
    end = world.clock.at.replace(minute=0, second=0, microsecond=0)
    node = Node.objects.get(name="node-3")
    LedgerRow.objects.bulk_create(
        LedgerRow(
            hour=end - timedelta(hours=number),
            cluster_name="eks-test",
            node_uid=node.uid,
            node_name=node.name,
            instance_type="g5.xlarge",
            kind=LedgerKind.IDLE,
            gpu_milliseconds=history.HOUR_MS,
            cost_amount=history.PRICE,
            usd_per_hour_amount=history.PRICE,
            sealed_at=end,
        )
        for number in range(1, 170)
    )


def _applied(world: World) -> tuple[AdviceItem, Any]:
    deployment = world.serving(min_replicas=3, max_replicas=3)
    history.age(world, deployment)
    history.write(world, deployment, replicas=3, busy=0.2)
    refresh.sweep()
    item = _item("fewer-replicas")
    change = answers.request(actor=world.member, item_id=item.pk)
    world.approved(change)
    world.reconcile_now(deployment)
    refresh.sweep()
    return item, deployment


def _at_daytime(at: datetime) -> int:
    return 500 if at.weekday() < 5 and 8 <= at.hour < 18 else 0
