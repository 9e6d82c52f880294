"""The objects of Kueue that tests read are as its published schemas say."""

from __future__ import annotations

from tests.contract import schemas
from tests.deployments import queues


def test_queues_and_workloads_match_the_published_schemas() -> None:
    published = schemas.require_custom()

    for version in ("v1beta1", "v1beta2"):
        for item in (
            queues.queue_of(),
            queues.queue_of(stopPolicy="Hold"),
            queues.workload_of("detector-r1-0", "pod-detector-r1-0-ab12c"),
        ):
            checker = published[f"kueue.x-k8s.io/{version}", item["kind"]]
            checker.validate(item)
