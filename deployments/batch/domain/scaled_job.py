"""The Kubernetes objects of a job that drains a queue: a ScaledJob of KEDA, which starts workers from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deployments.batch.domain import job, program
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources.interface import MessageQueue
from deployments.manifests.domain import network, pod_placement
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    Manifest,
    ManifestContext,
    ServedRevision,
)

API_VERSION: Final = "keda.sh/v1alpha1"
KIND: Final = "ScaledJob"
AUTHENTICATION: Final = "TriggerAuthentication"
POLLING_SECONDS: Final = 15
# After a worker died without giving back what it held, its messages are delivered again.
REDELIVERY_SECONDS: Final = 60
# On the Jobs of a ScaledJob.
OWNER_LABEL: Final = "scaledjob.keda.sh/name"
FAILURES: Final = 6
_CONSUMER: Final = {
    "name": "SLIPWAY_CONSUMER",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
}


def objects_of(
    context: ManifestContext,
    served: ServedRevision,
    settings: BatchSettings,
    queue: MessageQueue,
    *,
    name: str,
    columns: Sequence[Any] | None,
    until: float,
) -> list[Manifest]:
    """Return the objects of a job that drains a queue. `until` is the deadline in seconds of the epoch.

    `columns` are [name, datatype, shape] of the inputs; None means that messages must hold whole requests.
    """
    policy = network.queue_of(context, name, servers=queue.servers)
    spec = queue.kind.authentication(settings)
    authentications = [] if spec is None else [_authentication(context, name, spec)]
    triggers = queue.kind.triggers(queue, settings)
    if spec is not None:
        triggers = [{**trigger, "authenticationRef": {"name": name}} for trigger in triggers]
    plan = _plan(served, settings, queue, columns=columns, until=until)
    pod = job.pod(
        context,
        served,
        name=name,
        text=program.queue_text(queue.kind),
        plan=plan,
        env=[_CONSUMER, *queue.kind.environment(settings)],
    )
    return [
        policy,
        *authentications,
        *job.dependent_objects(context, served, job.labels_of(context, name)),
        _scaled_job(context, served, settings, triggers, pod, name=name),
    ]


def _scaled_job(
    context: ManifestContext,
    served: ServedRevision,
    settings: BatchSettings,
    triggers: list[dict[str, Any]],
    pod: dict[str, Any],
    *,
    name: str,
) -> Manifest:
    labels = job.labels_of(context, name)
    template = {
        "metadata": job.pod_metadata(context, served, labels),
        "spec": pod,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": context.namespace,
            # KEDA copies them to each Job, so that Kueue admits worker by worker.
            "labels": {**labels, **pod_placement.place(context, served).workload_labels},
        },
        "spec": {
            "jobTargetRef": {
                **job.suspension(context, served),
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": job.BACKOFF_LIMIT,
                "podFailurePolicy": {"rules": job.failure_rules()},
                "activeDeadlineSeconds": settings.hours * 3600,
                "ttlSecondsAfterFinished": job.TTL_SECONDS,
                "template": template,
            },
            "pollingInterval": POLLING_SECONDS,
            "maxReplicaCount": settings.workers,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": FAILURES,
            # Without a strategy: KEDA 2.20.0 and 2.20.1 refuse the name of their default.
            "scalingStrategy": {"multipleScalersCalculation": "max"},
            "triggers": triggers,
        },
    }


def _plan(
    served: ServedRevision,
    settings: BatchSettings,
    queue: MessageQueue,
    *,
    columns: Sequence[Any] | None,
    until: float,
) -> dict[str, Any]:
    return {
        "model": served.model_name,
        "requests": settings.requests,
        "source": dict(queue.plan),
        "parts": not queue.answers,
        "columns": columns,
        "tries": settings.tries,
        "idle": settings.idle_seconds,
        "redelivery": REDELIVERY_SECONDS,
        "until": until,
    }


def _authentication(context: ManifestContext, name: str, spec: dict[str, Any]) -> Manifest:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team}
    return {
        "apiVersion": API_VERSION,
        "kind": AUTHENTICATION,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": spec,
    }
