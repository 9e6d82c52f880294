"""What the tests of node actions ask: what was refused, what a budget says, where an action stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fleet.kube.domain.errors import FieldCause, Throttled
from fleet.models import FleetAction
from portal.audit.models import AuditEvent
from portal.core.errors import DomainError
from portal.notifications.models import Notice
from tests.fleet.fakes import FakeKube


@contextmanager
def refused(kube: FakeKube, error: type[DomainError], code: str = "") -> Iterator[None]:
    """Rows, audit and cluster stay as they were."""
    tables = (FleetAction, AuditEvent, Notice)
    before = [list(table.objects.order_by("pk").values()) for table in tables]
    with pytest.raises(error) as raised:
        yield
    assert not code or raised.value.code == code
    assert [list(table.objects.order_by("pk").values()) for table in tables] == before
    assert (kube.patched, kube.evicted) == ([], [])


def budget_refuses(pod: str) -> Throttled:
    cause = FieldCause(
        "", f"The disruption budget {pod} needs 1 healthy pods and has 1", "DisruptionBudget"
    )
    return Throttled("Cannot evict pod", retry_after_seconds=0, causes=[cause])


def state_of(action: FleetAction) -> tuple[str, str]:
    action.refresh_from_db()
    return action.state, action.state_reason


def is_schedulable(kube: FakeKube, name: str = "node-1") -> bool:
    return "unschedulable" not in kube.objects["Node", "", name]["spec"]
