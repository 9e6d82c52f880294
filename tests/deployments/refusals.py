"""A refusal leaves rows, audit and cluster as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deployments.models import (
    AdviceItem,
    Alert,
    Approval,
    BatchChunk,
    BatchJob,
    BatchUpload,
    ChangeRequest,
    Deployment,
    DeploymentEvent,
    EnvironmentRule,
    Pipeline,
    Revision,
    Rollout,
    ServiceTarget,
)
from portal.audit.models import AuditEvent
from portal.core.errors import DomainError
from tests.deployments.world import World

_TABLES = (
    AdviceItem,
    Alert,
    Approval,
    BatchChunk,
    BatchJob,
    BatchUpload,
    ChangeRequest,
    Deployment,
    DeploymentEvent,
    EnvironmentRule,
    Pipeline,
    Revision,
    Rollout,
    ServiceTarget,
    AuditEvent,
)


@contextmanager
def refused(world: World, error: type[DomainError], code: str = "") -> Iterator[list[DomainError]]:
    """The error is raised, and rows, audit and cluster are as before."""
    before = [list(table.objects.order_by("pk").values()) for table in _TABLES]
    writes = list(world.cluster.writes)
    raised: list[DomainError] = []
    with pytest.raises(error) as refusal:
        yield raised
    raised.append(refusal.value)
    assert not code or refusal.value.code == code, refusal.value.code
    assert [list(table.objects.order_by("pk").values()) for table in _TABLES] == before
    assert world.cluster.writes == writes
