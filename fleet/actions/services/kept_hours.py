"""What office hours mean for another change of the same pool."""

from __future__ import annotations

from fleet.models import FleetAction
from fleet.office_hours.selectors import office_hours


def warnings(action: FleetAction) -> list[str]:
    """For a request that changes the size of a pool; empty where it has none."""
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
