from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.models import Cluster
from portal.core import clock, leases

pytestmark = pytest.mark.django_db


@pytest.fixture
def row() -> Cluster:
    return Cluster.objects.create(
        name="one",
        kind="local",
        gateway_url="http://x",
        created_at=clock.now(),
        next_check_at=clock.now(),
    )


def test_second_claim_gets_nothing_while_the_first_holds(row: Cluster) -> None:
    first = leases.claim(Cluster, row.pk)

    assert first is not None
    assert leases.claim(Cluster, row.pk) is None
    assert leases.due(Cluster) == []


def test_a_dead_worker_costs_one_lease(row: Cluster) -> None:
    first = leases.claim(Cluster, row.pk, seconds=30)
    assert first is not None

    with time_machine.travel(clock.now() + timedelta(seconds=31), tick=False):
        assert leases.due(Cluster) == [row.pk]
        second = leases.claim(Cluster, row.pk)
        assert second is not None
        assert not leases.is_held(Cluster, first)
        assert leases.release(Cluster, first, next_check_at=None) is False
        assert leases.is_held(Cluster, second)


def test_an_expired_lease_is_lost_though_nobody_took_the_row(row: Cluster) -> None:
    lease = leases.claim(Cluster, row.pk, seconds=30)
    assert lease is not None

    with time_machine.travel(lease.until, tick=False):
        assert not leases.is_held(Cluster, lease)
        assert leases.renew(Cluster, lease) is None
    assert leases.is_held(Cluster, lease)


def test_release_sets_the_next_check(row: Cluster) -> None:
    lease = leases.claim(Cluster, row.pk)
    assert lease is not None
    later = clock.now() + timedelta(minutes=5)

    assert leases.release(Cluster, lease, next_check_at=later) is True

    row.refresh_from_db()
    assert row.next_check_at == later
    assert row.lease_until is None


def test_a_nudge_during_work_is_kept(row: Cluster) -> None:
    lease = leases.claim(Cluster, row.pk)
    assert lease is not None
    leases.nudge(Cluster, row.pk)

    leases.release(Cluster, lease, next_check_at=clock.now() + timedelta(hours=1))

    assert leases.due(Cluster) == [row.pk]


def test_failures_wait_longer_each_time_up_to_the_cap(row: Cluster) -> None:
    waits = []
    moment = clock.now()
    for _ in range(7):
        with time_machine.travel(moment, tick=False):
            lease = leases.claim(Cluster, row.pk)
            assert lease is not None
            leases.back_off(Cluster, lease)
            row.refresh_from_db()
            assert row.next_check_at is not None
            waits.append((row.next_check_at - moment).total_seconds())
            moment = row.next_check_at

    assert waits == [2, 4, 8, 16, 32, 60, 60]
