from __future__ import annotations

import pytest

from fleet.models import Cluster, GpuLease, MetricSample
from fleet.tasks import meter, observe_clusters, poll_metrics, thin_samples
from portal.celery_config import beat_schedule
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import node, pod

PAGE = 'nv_inference_request_success{model="detector",version="1"} 5\n'


@pytest.mark.django_db
def test_beat_runs_tasks_that_exist_and_each_may_run_twice(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    tasks = (observe_clusters, poll_metrics, meter, thin_samples)
    kube.put(node(), pod())
    kube.pages = {"detector-r1-abc": PAGE}

    for task in tasks * 2:
        task()

    scheduled = {entry["task"] for entry in beat_schedule.values()}
    assert {task.name for task in tasks} <= scheduled
    assert GpuLease.objects.count() == 1
    assert MetricSample.objects.count() == 2
