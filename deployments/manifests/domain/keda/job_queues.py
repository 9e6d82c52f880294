"""KEDA's triggers on queues outside the cluster, and how KEDA authenticates there.

The names in `metadata` are those of KEDA's scalers aws-sqs-queue, kafka and redis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    metadata,
)
from deployments.spec.domain.job_queues import KafkaTopic, RedisList, SqsQueue
from deployments.spec.domain.kubernetes_names import workload_name

KEDA: Final = "keda.sh/v1alpha1"
# Keys of the Secret, which are KEDA's parameters too.
_SECRET_KEYS: Final = {
    "kafka": ("sasl", "username", "password", "tls"),
    "redis": ("password",),
}


def triggers(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    result = []
    for name, queue in served.spec.scaling.job_queues.items():
        trigger: dict[str, Any] = {**_trigger(queue), "name": name}
        if isinstance(queue, SqsQueue) or queue.secret:
            trigger["authenticationRef"] = {"name": _name(context, served, name)}
        result.append(trigger)
    return result


def authentications(context: ManifestContext, served: ServedRevision) -> Iterator[Manifest]:
    """Return the TriggerAuthentications of a job queue. SQS is read with KEDA's own role, which needs
    sqs:GetQueueAttributes.
    """
    for name, queue in served.spec.scaling.job_queues.items():
        spec: dict[str, Any] = {"podIdentity": {"provider": "aws"}}
        if not isinstance(queue, SqsQueue):
            if not queue.secret:
                continue
            keys = _SECRET_KEYS[name]
            spec = {
                "secretTargetRef": [
                    {"parameter": key, "name": queue.secret, "key": key} for key in keys
                ]
            }
        yield {
            "apiVersion": KEDA,
            "kind": "TriggerAuthentication",
            "metadata": metadata(context, _name(context, served, name), served),
            "spec": spec,
        }


def _name(context: ManifestContext, served: ServedRevision, queue: str) -> str:
    return f"{workload_name(context.deployment, served.number)}-{queue}"


def _trigger(queue: SqsQueue | KafkaTopic | RedisList) -> dict[str, Any]:
    match queue:
        case SqsQueue():
            return {
                "type": "aws-sqs-queue",
                "metadata": {
                    "queueURL": queue.queue_url,
                    "awsRegion": queue.region,
                    "queueLength": str(queue.messages),
                    "activationQueueLength": "0",
                    "scaleOnInFlight": "true",
                },
            }
        case KafkaTopic():
            return {
                "type": "kafka",
                "metadata": {
                    "bootstrapServers": queue.bootstrap_servers,
                    "consumerGroup": queue.consumer_group,
                    "topic": queue.topic,
                    "lagThreshold": str(queue.lag),
                    "activationLagThreshold": "0",
                },
            }
        case RedisList():
            return {
                "type": "redis",
                "metadata": {
                    "address": queue.address,
                    "listName": queue.list,
                    "listLength": str(queue.items),
                    "activationListLength": "0",
                },
            }
