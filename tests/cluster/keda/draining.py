"""A ScaledJob of a job that drains a queue, on KEDA itself: started, watched and taken away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deployments.batch.domain import job, observation, scaled_job
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources.interface import MessageQueue
from fleet.kube.services import objects
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served

NAME = "batch-7-1"


def make_secret(scaled: Scaled, name: str, values: dict[str, str]) -> None:
    metadata = {"name": name, "namespace": scaled.context.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}
    scaled.admin.apply([secret])


def start(scaled: Scaled, settings: BatchSettings, queue: MessageQueue) -> None:
    """What the portal writes, read by KEDA each second."""
    version = replace(served("triton"), spec=job.spec_of(settings))
    manifests = scaled_job.objects_of(
        scaled.context, version, settings, queue, name=NAME, columns=None, until=1.0
    )
    manifests[-1]["spec"]["pollingInterval"] = 1
    # KEDA reads what the pods' environment refers to.
    links = job.links(scaled.context, name=NAME, urls={0: "https://s3/list"})
    objects.apply(cluster_id=scaled.cluster_id, manifests=[links, *manifests])


def workers(scaled: Scaled) -> list[dict[str, Any]]:
    """Their Jobs."""
    found: list[dict[str, Any]] = scaled.admin.get(
        "jobs", f"--namespace={scaled.context.namespace}"
    )["items"]
    return found


def wait_for_workers(scaled: Scaled, count: int) -> None:
    wait_until(lambda: len(workers(scaled)) == count, scaled.keda_logs)


def wait_until_empty(scaled: Scaled) -> None:
    """As the portal sees the queue by what KEDA says."""

    def is_empty() -> bool:
        live = scaled.admin.get("scaledjob", NAME, f"--namespace={scaled.context.namespace}")
        return observation.observe_queue(live, []).is_empty

    wait_until(is_empty, scaled.keda_logs)


def end(scaled: Scaled) -> None:
    """Taken away, and its workers with it."""
    objects.delete(
        cluster_id=scaled.cluster_id,
        api_version=scaled_job.API_VERSION,
        kind=scaled_job.KIND,
        namespace=scaled.context.namespace,
        name=NAME,
    )
    wait_for_workers(scaled, 0)
