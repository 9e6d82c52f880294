"""The kinds of queues that a job can drain."""

from __future__ import annotations

from typing import Final

from deployments.batch.domain.sources.interface import QueueKind
from deployments.batch.domain.sources.kafka.kind import KafkaKind
from deployments.batch.domain.sources.redis.kind import RedisKind
from deployments.batch.domain.sources.sqs.kind import SqsKind

KINDS: Final[tuple[QueueKind, ...]] = (RedisKind(), SqsKind(), KafkaKind())


def kind_of(address: str) -> QueueKind | None:
    """Return the kind of queue of an address. None if it is not the address of a queue."""
    text = address.strip().lower()
    return next((kind for kind in KINDS if text.startswith(kind.schemes)), None)
