"""Office hours of node pools as people read them. Everyone may see them, as everyone sees nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet

from fleet.models import PoolOfficeHours
from fleet.office_hours.domain import hours as hour_rules
from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.hours import OfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from portal.core import clock, leases
from portal.core.leases import Backlog


@dataclass(frozen=True, slots=True)
class KeptHours:
    """The office hours of a pool as people read them. `is_open` is what was last done; `next_edge_at` when it opens
    or closes next.
    """

    row: PoolOfficeHours
    hours: OfficeHours
    next_edge_at: datetime
    opens_next: bool

    @property
    def description(self) -> str:
        return hour_rules.describe(self.hours)

    @property
    def is_open(self) -> bool:
        return self.row.is_open

    @property
    def open_size(self) -> str:
        return sizes.describe(self.row.last_size if self.row.is_open else self.row.open_size)

    @property
    def current_size(self) -> str:
        return sizes.describe(self.row.last_size)

    @property
    def changed_by_hand(self) -> str:
        """The size before a person changed it since the last edge. Empty if nobody did."""
        return sizes.describe(self.row.changed_from) if self.row.changed_at else ""

    @property
    def slug(self) -> str:
        return PoolKind(self.row.target_kind).slug


def find(*, cluster_id: int, kind: str, name: str) -> KeptHours | None:
    row = get_row(cluster_id=cluster_id, kind=kind, name=name)
    return None if row is None else _kept(row)


def get_row(*, cluster_id: int, kind: str, name: str) -> PoolOfficeHours | None:
    return _rows().filter(cluster=cluster_id, target_kind=kind, target=name).first()


def list_of_cluster(cluster_id: int) -> list[KeptHours]:
    return [_kept(row) for row in _rows().filter(cluster=cluster_id)]


def by_name(*, cluster_id: int, kind: PoolKind) -> dict[str, KeptHours]:
    rows = _rows().filter(cluster=cluster_id, target_kind=kind)
    return {row.target: _kept(row) for row in rows}


def backlog() -> Backlog:
    """Return the backlog of office hours that a worker has to take."""
    return leases.backlog(PoolOfficeHours.objects.all())


def count_by_state() -> dict[str, int]:
    """Count the pools in and out of their office hours, and those whose last pass could not do what it had to."""
    pools = PoolOfficeHours.objects.order_by()
    counts = pools.aggregate(
        open=Count("pk", filter=Q(is_open=True, problem="")),
        closed=Count("pk", filter=Q(is_open=False, problem="")),
        problem=Count("pk", filter=~Q(problem="")),
    )
    return {name: int(count) for name, count in counts.items()}


def _rows() -> QuerySet[PoolOfficeHours]:
    return PoolOfficeHours.objects.select_related("cluster", "action__requester").defer(
        "cluster__capabilities", "cluster__serving"
    )


def _kept(row: PoolOfficeHours) -> KeptHours:
    hours, at = OfficeHours.from_json(row.hours), clock.now()
    return KeptHours(row, hours, hours.next_edge(at), not hours.is_open(at))
