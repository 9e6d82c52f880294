"""Objects beside a workload that somebody deletes are back at once: the watch hears of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

from deployments.models import Deployment
from fleet.models import Cluster
from fleet.observation.services.watch import ClusterWatch
from portal.core import clock
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world

__all__ = ["cluster_calls", "delivered", "moving_clock", "world"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        os.environ.get("SLIPWAY_TEST_SQLITE") == "1",
        reason="SQLite's test database is in memory, where threads lock each other out",
    ),
]
_KINDS = {
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}


@pytest.fixture
def watch(delivered: Delivered) -> Iterator[ClusterWatch]:
    """With the permissions of the portal's account; it has listed everything."""
    made = ClusterWatch(delivered.world.cluster_id)
    made.start()
    wait_until(
        lambda: Cluster.objects.get(pk=delivered.world.cluster_id).watch_seen_at is not None,
        lambda: "pods and nodes are not followed",
    )
    yield made
    made.stop()
    made.join(5)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_deleted_object_is_back_without_waiting_for_the_next_comparison(
    delivered: Delivered, watch: ClusterWatch, somebody: Kubectl, kind: str
) -> None:
    assert watch.cluster_id == delivered.world.cluster_id
    deployment = delivered.deployed("guarded", min_replicas=2, max_replicas=2)
    delivered.reconcile_now(deployment)
    where = f"--namespace={delivered.namespace}"
    (name,) = [
        item["metadata"]["name"]
        for item in somebody.get(kind, where)["items"]
        if item["metadata"]["labels"].get("slipway.dev/deployment-id") == str(deployment.pk)
    ]
    before = delivered.get(_KINDS[kind], kind, name)
    assert deployment.objects_checked_at is not None
    tomorrow = clock.now() + timedelta(days=1)
    Deployment.objects.filter(pk=deployment.pk).update(next_check_at=tomorrow)

    somebody.run("delete", kind, name, where)
    wait_until(lambda: _is_due(deployment), lambda: "nothing was heard of the deletion")
    delivered.world.work()

    after = delivered.get(_KINDS[kind], kind, name)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def _is_due(deployment: Deployment) -> bool:
    """For a pass that compares everything, by the clock of the test, which stands still."""
    deployment.refresh_from_db()
    due_at = deployment.next_check_at
    return deployment.objects_checked_at is None and due_at is not None and due_at <= clock.now()
