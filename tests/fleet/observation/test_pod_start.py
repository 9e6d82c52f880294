"""Durations of the steps of a pod's first start."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.models import Cluster, GpuLease, Pod
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from tests.fleet.objects import START, node, pod, stamp


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def started(
    *, restarts: int = 0, ready: float = 130, version: int = 1, name: str = "detector-r1-abc"
) -> dict[str, Any]:
    """40 s for a node, 20 s for images, 50 s download, 5 s digests, 15 s load."""
    made = pod(name, version=version, scheduled=at(40))
    made["status"] = {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(at(40))},
            {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(ready))},
        ],
        "initContainerStatuses": [
            _ended("storage-initializer", 45, 95),
            _ended("digest-check", 100, 105),
        ],
        "containerStatuses": [
            {
                "name": "tritonserver",
                "restartCount": restarts,
                "state": {"running": {"startedAt": stamp(at(115))}},
            }
        ],
    }
    return made


def _ended(name: str, began: float, ended: float) -> dict[str, Any]:
    times = {"startedAt": stamp(at(began)), "finishedAt": stamp(at(ended)), "exitCode": 0}
    return {"name": name, "restartCount": 0, "state": {"terminated": times}}


def observe(cluster: Cluster, *pods: dict[str, Any], seconds: float = 200) -> None:
    changes = ObservedChanges(nodes=[node()], pods=list(pods))
    record.record(cluster_id=cluster.pk, changes=changes, at=at(seconds))


STEPS = {"node": 40, "image": 20, "download": 50, "compare": 5, "load": 15}
pytestmark = pytest.mark.django_db


def test_each_step_of_a_start_is_measured(cluster: Cluster, detector: int) -> None:
    observe(cluster, started())

    assert Pod.objects.get().start_seconds == STEPS


def test_only_the_first_start_counts(cluster: Cluster, detector: int) -> None:
    observe(cluster, started())
    observe(cluster, started(version=2, ready=900), seconds=1000)

    assert Pod.objects.get().start_seconds == STEPS


def test_a_start_with_restarts_is_no_measure(cluster: Cluster, detector: int) -> None:
    observe(cluster, started(restarts=1))

    row = Pod.objects.get()
    assert (row.ready_at, row.start_seconds) == (at(130), {})


def test_a_pod_that_still_loads_has_no_measure(cluster: Cluster, detector: int) -> None:
    loading = started()
    loading["status"]["conditions"][1]["status"] = "False"
    observe(cluster, loading)

    assert Pod.objects.get().start_seconds == {}
    observe(cluster, started(version=2))
    assert Pod.objects.get().start_seconds == STEPS


def test_the_start_of_a_pod_that_a_queue_admitted_is_no_measure(
    cluster: Cluster, detector: int
) -> None:
    queued = started()
    queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "serving"
    observe(cluster, queued)

    row = Pod.objects.get()
    assert (row.ready_at, row.start_seconds) == (at(130), {})


def test_a_pod_that_waits_in_a_queue_says_so_and_holds_no_gpu(
    cluster: Cluster, detector: int
) -> None:
    gated = pod("detector-r1-abc")
    gated["spec"] |= {"nodeName": "", "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    reason = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    gated["status"] = {"phase": "Pending", "conditions": [reason]}
    observe(cluster, gated)

    row = Pod.objects.get()
    assert (row.reason, row.message) == ("Queued", "Waits for admission by Kueue.")
    assert not GpuLease.objects.exists()
