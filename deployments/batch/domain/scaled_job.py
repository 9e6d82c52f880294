"""The Kubernetes objects of a job that drains a queue: a ScaledJob of KEDA, which starts workers from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deployments.batch.domain import job, program
from deployments.batch.domain.queues import Queue
from deployments.batch.domain.settings import BatchSettings
from deployments.manifests.domain import network
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
FAILURES: Final = 6
PASSWORD: Final = "SLIPWAY_QUEUE_PASSWORD"  # noqa: S105  the name of a variable
CONSUMER: Final = "SLIPWAY_CONSUMER"


def objects_of(
    context: ManifestContext,
    served: ServedRevision,
    settings: BatchSettings,
    queue: Queue,
    *,
    name: str,
    columns: Sequence[Any] | None,
    until: float,
) -> list[Manifest]:
    """`columns` are [name, datatype, shape] of the inputs; None: messages must hold whole requests. `until` is the
    deadline in seconds of the epoch.
    """
    policy = network.queue_of(context, name, host=queue.host, port=queue.port)
    authentications = [_authentication(context, name, settings.secret)] if settings.secret else []
    scaled = _scaled_job(context, served, settings, queue, name=name, columns=columns, until=until)
    return [policy, *authentications, scaled]


def _scaled_job(
    context: ManifestContext,
    served: ServedRevision,
    settings: BatchSettings,
    queue: Queue,
    *,
    name: str,
    columns: Sequence[Any] | None,
    until: float,
) -> Manifest:
    labels = job.labels_of(context, name)
    template = {
        "metadata": {
            "labels": labels,
            "annotations": {"slipway.dev/version": served.version_label},
        },
        "spec": job.pod(
            context,
            served,
            name=name,
            text=program.QUEUE_TEXT,
            plan=_plan(served, settings, queue, columns=columns, until=until),
            env=_environment(settings),
        ),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": {
            "jobTargetRef": {
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
            "scalingStrategy": {"strategy": "default", "multipleScalersCalculation": "max"},
            "triggers": _triggers(settings, queue, name),
        },
    }


def _plan(
    served: ServedRevision,
    settings: BatchSettings,
    queue: Queue,
    *,
    columns: Sequence[Any] | None,
    until: float,
) -> dict[str, Any]:
    return {
        "model": served.model_name,
        "requests": settings.requests,
        "source": queue.to_plan(),
        "parts": not queue.answers,
        "columns": columns,
        "tries": settings.tries,
        "idle": settings.idle_seconds,
        "redelivery": REDELIVERY_SECONDS,
        "until": until,
    }


def _environment(settings: BatchSettings) -> list[dict[str, Any]]:
    pod_name = {"fieldRef": {"fieldPath": "metadata.name"}}
    env: list[dict[str, Any]] = [{"name": CONSUMER, "valueFrom": pod_name}]
    if settings.secret:
        key = {"secretKeyRef": {"name": settings.secret, "key": "password"}}
        env.append({"name": PASSWORD, "valueFrom": key})
    return env


def _triggers(settings: BatchSettings, queue: Queue, name: str) -> list[dict[str, Any]]:
    """What nobody has read, and what was read and not acknowledged: its worker may be gone."""
    shared = {
        "address": queue.address,
        "stream": queue.stream,
        "consumerGroup": queue.group,
        "enableTLS": str(queue.is_encrypted).lower(),
        **({"username": queue.username} if queue.username else {}),
    }
    count = str(settings.messages_per_worker)
    reference = {"authenticationRef": {"name": name}} if settings.secret else {}
    return [
        {
            "type": "redis-streams",
            "name": kind,
            "metadata": {**shared, field: count},
            **reference,
        }
        for kind, field in (("unread", "lagCount"), ("pending", "pendingEntriesCount"))
    ]


def _authentication(context: ManifestContext, name: str, secret: str) -> Manifest:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team}
    return {
        "apiVersion": API_VERSION,
        "kind": AUTHENTICATION,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": {"secretTargetRef": [{"parameter": "password", "name": secret, "key": "password"}]},
    }
