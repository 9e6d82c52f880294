"""The addresses of the ledger page with the rows behind a number."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from fleet.costs.domain.results import UNATTRIBUTED, GroupKey


def build_address(
    start: datetime, end: datetime, *, team_slug: str = "", key: GroupKey | None = None
) -> str:
    """Return the address of the rows in [start, end) of a team and a group. Without both it is of all rows."""
    names = {"from": f"{start:%Y-%m-%dT%H:%MZ}", "to": f"{end:%Y-%m-%dT%H:%MZ}", "team": team_slug}
    if key is not None:
        names |= _list_filters(key)
    return f"/costs/ledger?{urlencode({name: value for name, value in names.items() if value})}"


def _list_filters(key: GroupKey) -> dict[str, str]:
    if key.is_others:
        return {"kind": "held"}
    if key.is_idle:
        return {"kind": "idle", "cluster": key.cluster_name}
    if key.cluster_name:
        return {"cluster": key.cluster_name, "kind": "held"}
    return {
        "holder": key.team_slug or UNATTRIBUTED,
        "model": key.model,
        "deployment": key.deployment,
        "revision": key.revision,
        "kind": "held",
    }
