"""The effect of office hours on other changes of the same pool."""

from __future__ import annotations

from fleet.models import FleetAction
from fleet.office_hours.selectors import office_hours


def warnings(action: FleetAction) -> list[str]:
    """Return warnings about office hours for a request that changes a pool's size. Empty if the pool has none."""
    kept = office_hours.find(
        cluster_id=action.cluster_id, kind=action.target_kind, name=action.target
    )
    if kept is None:
        return []
    edge = f"{kept.next_edge_at:%Y-%m-%d %H:%M} UTC"
    if not kept.opens_next:
        return [f"It has office hours and closes at {edge}. It gets this size back when it opens."]
    back = f"then it gets back {kept.open_size}"
    return [f"It has office hours and opens at {edge}: {back}. Until then this size stays."]
