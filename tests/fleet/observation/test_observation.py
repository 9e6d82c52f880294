from __future__ import annotations

import math
from datetime import timedelta

import pytest
from django.db import transaction

from fleet.models import Cluster, GpuLease, Node, Pod
from fleet.observation.services import record, subscribers
from fleet.observation.services.record import FullListing, ObservedChanges
from tests.fleet.objects import START, node, pod

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db


def facts(cluster: Cluster) -> list[tuple[object, ...]]:
    return list(
        GpuLease.objects.filter(cluster=cluster).values_list(
            "pod_name", "node__name", "team_slug", "share_ppm", "started_at", "ended_at"
        )
    )


def test_scheduled_pod_opens_a_lease_at_its_scheduled_time(cluster: Cluster, detector: int) -> None:
    scheduled = START + timedelta(minutes=5)

    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(nodes=[node()], pods=[pod(scheduled=scheduled)]),
        at=START + HOUR,
    )

    assert facts(cluster) == [("detector-r1-abc", "node-1", "vision", 1_000_000, scheduled, None)]
    assert Pod.objects.get().workload_id == detector


def test_pending_pod_has_no_lease_and_a_reason(cluster: Cluster, detector: int) -> None:
    waiting = pod(node_name="", scheduled=None, phase="Pending")

    record.record(
        cluster_id=cluster.pk, changes=ObservedChanges(nodes=[node()], pods=[waiting]), at=START
    )

    assert facts(cluster) == []
    row = Pod.objects.get()
    assert row.reason == "Unschedulable"
    assert row.message == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_a_pod_on_a_node_that_came_back_waits_for_the_new_node(
    cluster: Cluster, detector: int
) -> None:
    back = START + HOUR
    record.record(
        cluster_id=cluster.pk, changes=ObservedChanges(nodes=[node(uid="first")]), at=START
    )
    gone = ObservedChanges(deleted_nodes=[node(uid="first", version=2)])
    record.record(cluster_id=cluster.pk, changes=gone, at=START + HOUR / 2)

    placed = pod(version=3, created=back, scheduled=back)
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(pods=[placed]), at=back)
    assert GpuLease.objects.count() == 0
    second = node(uid="second", version=4, created=back)
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=[second]), at=back)

    assert GpuLease.objects.get().node.uid == "second"


def test_every_order_of_the_same_events_gives_the_same_lease(
    cluster: Cluster, detector: int
) -> None:
    done = START + HOUR
    events = [
        ObservedChanges(nodes=[node()]),
        ObservedChanges(pods=[pod(version=2, node_name="", scheduled=None, phase="Pending")]),
        ObservedChanges(pods=[pod(version=3)]),
        ObservedChanges(pods=[pod(version=4, phase="Succeeded", finished=done)]),
        ObservedChanges(
            deleted_pods=[pod(version=5, phase="Succeeded", finished=done, deleted=done)]
        ),
    ]
    ends = []

    def observe_each_order_of(left: list[ObservedChanges]) -> None:
        """Orders that begin alike share their beginning."""
        if not left:
            ends.append(facts(cluster))
        for number, observation in enumerate(left):
            with transaction.atomic():
                record.record(cluster_id=cluster.pk, changes=observation, at=START + 2 * HOUR)
                observe_each_order_of(left[:number] + left[number + 1 :])
                transaction.set_rollback(True)

    observe_each_order_of(events)

    expected = [("detector-r1-abc", "node-1", "vision", 1_000_000, START, done)]
    assert ends == [expected] * math.factorial(len(events))


def test_seeing_the_same_again_changes_nothing(cluster: Cluster, detector: int) -> None:
    changes = ObservedChanges(nodes=[node()], pods=[pod()])
    record.record(cluster_id=cluster.pk, changes=changes, at=START)
    before = list(GpuLease.objects.values()), list(Pod.objects.values())

    record.record(cluster_id=cluster.pk, changes=changes, at=START + HOUR)

    assert (list(GpuLease.objects.values()), list(Pod.objects.values())) == before


def test_pod_that_vanished_unobserved_ends_at_the_last_observation(
    cluster: Cluster, detector: int
) -> None:
    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing([node()], 10),
        pods=FullListing([pod()], 10),
        at=START,
    )

    record.replace_all(
        cluster_id=cluster.pk,
        nodes=FullListing([node()], 20),
        pods=FullListing([], 20),
        at=START + 3 * HOUR,
    )

    assert facts(cluster) == [("detector-r1-abc", "node-1", "vision", 1_000_000, START, START)]
    assert Cluster.objects.get().last_seen_at == START + 3 * HOUR


def test_pod_newer_than_the_listing_is_not_taken_for_gone(cluster: Cluster, detector: int) -> None:
    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(nodes=[node()], pods=[pod(version=30)]),
        at=START,
    )

    record.replace_all(
        cluster_id=cluster.pk, nodes=FullListing([node()], 20), pods=FullListing([], 20), at=START
    )

    assert Pod.objects.get().gone_at is None


def test_node_that_goes_takes_its_leases_with_it(cluster: Cluster, detector: int) -> None:
    record.record(
        cluster_id=cluster.pk, changes=ObservedChanges(nodes=[node()], pods=[pod()]), at=START
    )

    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(deleted_nodes=[node(version=9)]),
        at=START + HOUR,
    )

    assert [lease[-1] for lease in facts(cluster)] == [START + HOUR]
    assert Node.objects.get().gone_at == START + HOUR


def test_unregistered_gpu_pod_is_metered_without_a_team(cluster: Cluster) -> None:
    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(
            nodes=[node()], pods=[pod("orphan", workload="", namespace="default")]
        ),
        at=START,
    )

    assert [(lease[0], lease[2]) for lease in facts(cluster)] == [("orphan", "")]


def test_pod_without_gpu_and_workload_is_not_kept(cluster: Cluster) -> None:
    system = pod("coredns", workload="", units=0)

    record.record(cluster_id=cluster.pk, changes=ObservedChanges(pods=[system]), at=START)

    assert not Pod.objects.exists()


def test_observers_are_called_once_for_a_changed_pod(
    cluster: Cluster, detector: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[int, str]] = []
    monkeypatch.setattr(subscribers, "_observers", [])
    subscribers.register(lambda pk, labels: heard.extend((pk, label) for label in labels))
    changes = ObservedChanges(nodes=[node()], pods=[pod("a"), pod("b")])

    for _ in range(2):
        record.record(cluster_id=cluster.pk, changes=changes, at=START)

    assert heard == [(cluster.pk, "7")]


def test_node_of_the_same_name_with_another_uid_is_another_life(cluster: Cluster) -> None:
    record.record(
        cluster_id=cluster.pk, changes=ObservedChanges(nodes=[node(uid="first")]), at=START
    )
    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(deleted_nodes=[node(uid="first", version=2)]),
        at=START,
    )

    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(nodes=[node(uid="second", version=3)]),
        at=START,
    )

    lives = Node.objects.order_by("pk").values_list("uid", "gone_at")
    assert list(lives) == [("first", START), ("second", None)]
