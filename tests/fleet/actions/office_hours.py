"""Office hours as the tests request them, and the passes of the worker that keeps them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.actions.services import hours_requests
from fleet.models import Cluster, FleetAction
from fleet.office_hours.domain.hours import OfficeHours, Window
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.services import keep
from portal.accounts.models import User
from tests.fleet.actions.conftest import BEFORE, FakeGroups, Hands

__all__ = ["HOURS", "NIGHT", "OWN", "Clockwork", "hands", "request_hours", "set_hours", "size_of"]
HOURS = OfficeHours((Window(450, 1320),) * 5 + (None,) * 2, timezone="Europe/Berlin")
NIGHT = {"min_size": 0, "max_size": 1, "desired_size": 0}
OWN = BEFORE.to_json()


class Clockwork(Hands):
    """The worker's passes, of the office hours too."""

    def at_time(self, text: str) -> None:
        self.at = datetime.fromisoformat(text)

    def keep(self, aws: FakeGroups | None = None, times: int = 6) -> None:
        for _ in range(times):
            self.at += timedelta(seconds=15)
            keep.sweep()
            if aws is not None and aws.group.status == "UPDATING":
                aws.finish()


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Clockwork:
    return Clockwork(monkeypatch)


def request_hours(
    lead: User, cluster: Cluster, kind: PoolKind = PoolKind.NODE_GROUP, **more: Any
) -> FleetAction:
    call: dict[str, Any] = {
        "actor": lead,
        "cluster_id": cluster.pk,
        "kind": kind,
        "name": "gpu",
        "hours": HOURS,
    }
    return hours_requests.request_office_hours(**call | more)


def set_hours(lead: User, admin: User, cluster: Cluster, hands: Clockwork, **more: Any) -> None:
    """Approved and carried out on a Friday at noon, in office hours."""
    hands.approve(request_hours(lead, cluster, **more), admin)
    hands.sweep(3)


def size_of(aws: FakeGroups) -> dict[str, int]:
    return aws.group.size.to_json()
