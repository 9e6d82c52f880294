"""A pod of three seconds, and clocks that jump: every hour still sums to its node's cost."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.test import Client

from fleet.costs.services import ledger
from fleet.models import Cluster, GpuLease, LedgerRow
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from portal.accounts.models import User
from tests.fleet.costs.observed import G5, HOUR, rows, see
from tests.fleet.objects import START, pod
from tests.page import page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("detector", "catalogue")]
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def seal(at: datetime) -> list[datetime]:
    with time_machine.travel(at, tick=False):
        return ledger.seal_due()


@pytest.mark.parametrize("is_seen_alive", [True, False])
def test_a_pod_that_lived_three_seconds_is_charged_for_them(
    cluster: Cluster, *, is_seen_alive: bool
) -> None:
    began = START + 10 * MINUTE
    ended = began + 3 * SECOND
    see(cluster, START, pods=[])
    if is_seen_alive:
        alive = ObservedChanges(pods=[pod(version=51, created=began, scheduled=began)])
        record.record(cluster_id=cluster.pk, changes=alive, at=began + SECOND)
    dead = pod(
        version=52, created=began, scheduled=began, phase="Failed", finished=ended, deleted=ended
    )
    gone = ObservedChanges(deleted_pods=[dead])
    record.record(cluster_id=cluster.pk, changes=gone, at=ended + SECOND)
    see(cluster, START + HOUR, pods=[])

    assert seal(START + HOUR + 4 * MINUTE) == [START]

    lease = GpuLease.objects.get()
    assert (lease.started_at, lease.ended_at) == (began, ended)
    charged = (G5 * 3 / 3600).quantize(Decimal("0.000001"))
    assert rows() == [("allocated", "vision", charged), ("idle", "", G5 - charged)]
    client = Client()
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))
    with time_machine.travel(START + HOUR + 5 * MINUTE, tick=False):
        row = page(client.get("/costs")).row("vision")
    assert (row["Cost"], row["Utilisation"], row["Inferences"]) == (
        "$0.00084",
        "not known",
        "not known",
    )


def test_a_clock_that_is_set_back_and_forward_again_seals_each_hour_once(cluster: Cluster) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    assert seal(START + HOUR + 4 * MINUTE) == [START]
    sealed = list(LedgerRow.objects.values())

    see(cluster, START + HOUR / 2)
    assert seal(START + HOUR / 2) == []
    assert list(LedgerRow.objects.values()) == sealed

    see(cluster, START + 2 * HOUR)
    assert seal(START + 2 * HOUR + 4 * MINUTE) == [START + HOUR]
    assert rows() == [("allocated", "vision", G5), ("allocated", "vision", G5)]


def test_a_clock_that_jumps_a_day_ahead_charges_what_was_observed_and_no_more(
    cluster: Cluster,
) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)

    assert seal(START + 25 * HOUR) == [START], "later hours were not observed yet"


def test_the_clock_of_the_api_server_may_be_ahead_of_ours(cluster: Cluster) -> None:
    """A pod that was scheduled in our future, and ended before that: nothing is charged below zero."""
    ahead = pod(version=2, scheduled=START + HOUR + 10 * MINUTE)
    see(cluster, START, pods=[ahead])
    see(cluster, START + HOUR, pods=[ahead])
    assert seal(START + HOUR + 4 * MINUTE) == [START]
    ended = START + HOUR + 5 * MINUTE
    over = pod(version=3, scheduled=START + HOUR + 10 * MINUTE, phase="Failed", finished=ended)
    see(cluster, START + 2 * HOUR, pods=[over])
    assert seal(START + 2 * HOUR + 4 * MINUTE) == [START + HOUR]

    assert rows() == [("idle", "", G5), ("idle", "", G5)]
