"""Every page and every reading operation of the API, with an address of the seed.

The rows are those of tests/portal/permissions, which are held against the URL resolver and the OpenAPI
document: an address without a row ends the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.portal.api.full_world import FullWorld
    from tests.portal.permissions.matrix import Row

_DOWNLOAD = "a file of all rows"
_NOT_CONFIGURED = "another server answers it, and none is configured"
NOT_MEASURED = {
    "GET costs.csv": _DOWNLOAD,
    "GET costs/ledger.csv": _DOWNLOAD,
    "GET costs/callers.csv": _DOWNLOAD,
    "get costs.csv": _DOWNLOAD,
    "get costs/ledger.csv": _DOWNLOAD,
    "GET <slug:team>/import/mlflow/<slug:server>": _NOT_CONFIGURED,
    "get mlflow-servers/{server}/models": _NOT_CONFIGURED,
    "get mlflow-servers/{server}/versions": _NOT_CONFIGURED,
    "GET sign-in/with/<str:provider_id>": _NOT_CONFIGURED,
    "GET sign-in/with/<str:provider_id>/callback": _NOT_CONFIGURED,
    **dict.fromkeys(
        (
            "GET decide/<str:token>",
            "GET decisions/<int:link_id>",
            "GET invitation/<str:token>",
            "GET invitation",
            "GET password-link/<str:token>",
            "GET password-link",
            "GET sign-in/code",
        ),
        "shows one row, to whoever has its link",
    ),
    "GET charts/vega-<str:version>.js": "a file of the installation",
    "GET <slug:team>/models/<slug:name>/<int:number>/code": "a file of the object store",
    "GET <slug:team>/batch/<slug:name>/parts/<int:number>": "a file of the object store",
    "get versions/{version_id}/parts": "signs addresses of an upload, and lists nothing",
}
# Filters and groups of the pages that have them.
_MORE = (
    *("costs?group=deployment", "costs?group=revision", "costs?range=24h&group=deployment"),
    *(
        "costs?range=30d&group=model",
        "vision/deployments?q=d-1",
        "vision/models?q=map>0.4&sort=-metric:map",
    ),
    *("fleet?show=idle", "audit?q=approved", "alerts?page=3", "advice?page=3"),
)
_MORE_OF_API = (
    *(
        "costs?group_by=deployment",
        "versions?search=l1",
        "deployments?limit=100",
        "changes?limit=100",
    ),
    *("nodes?limit=100", "models?limit=100", "pods?limit=100"),
)


@dataclass(frozen=True, slots=True)
class Address:
    key: str
    role: str
    path: str


def addresses(full: FullWorld) -> list[Address]:
    """Raises AssertionError for an address without a row."""
    from django.test import Client

    from tests.portal.permissions import matrix, operations, pages

    rows = {row.key: row for row in (*pages.ROWS, *operations.ROWS)}
    client = Client()
    client.force_login(full.world.admin)
    there = matrix.pages(client) | matrix.operations()
    reads = {key for key in there if key.lower().startswith("get ")}
    assert not reads - rows.keys(), (
        f"write a row in tests/portal/permissions for {reads - rows.keys()}"
    )
    assert not NOT_MEASURED.keys() - reads, f"gone: {NOT_MEASURED.keys() - reads}"
    named = _names(full)
    found = [
        Address(
            key, role, _path(rows[key], {**full.names, **rows[key].named, **named.get(key, {})})
        )
        for key in sorted(reads - NOT_MEASURED.keys())
        for role in _roles(rows[key])
    ]
    return [*found, *_more()]


def _roles(row: Row) -> Iterator[str]:
    allowed = row.allowed.split()
    if not allowed:
        raise AssertionError(f"nobody may read {row.key}")
    if "lead" in allowed:
        yield "lead"
    # To an admin the lists of everybody are longer, those of one team are not.
    if "lead" not in allowed or "stranger" in allowed:
        yield "admin"


def _more() -> Iterator[Address]:
    for role in ("lead", "admin"):
        for path in _MORE:
            yield Address(f"GET {path}", role, f"/{path}")
        for path in _MORE_OF_API:
            yield Address(f"get {path}", role, f"/api/v1/{path}")


def _names(full: FullWorld) -> Mapping[str, Mapping[str, Any]]:
    """Where the rows of tests/portal/permissions name what is not there."""
    pool = {"name": "gpu", "kind": "node-pool"}
    return {
        "GET fleet/clusters/<int:cluster_id>/pools/of/<slug:name>": pool,
        "GET fleet/clusters/<int:cluster_id>/node-groups/<str:name>": pool,
        "GET fleet/clusters/<int:cluster_id>/node-classes/of/<str:name>": pool,
        "GET fleet/clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:name>": pool,
        "GET <slug:team>/deployments/<slug:name>/promote": {"name": "trial"},
        "get deployments/{deployment_id}/promotion": {"deployment_id": full.names["trial_id"]},
    }


def _path(row: Row, names: Mapping[str, Any]) -> str:
    from tests.portal import addresses as pages

    _, _, route = row.key.partition(" ")
    if row.is_api:
        return f"/api/v1/{route.format(**names)}{row.query}"
    return pages.path_of(route, names) + row.query
