"""Which listings are sent for the objects of many namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.kube.domain.errors import NotAllowed
from fleet.kube.domain.resource_types import ResourceType
from fleet.kube.gateways.kube_client import Listing
from fleet.kube.services import clients, objects

_KINDS = [("v1", "Service")]
_NINE = [f"team-{number}" for number in range(9)]


class _Client:
    """`everywhere`: whether kinds may be listed in the whole cluster; `refused`: namespaces."""

    def __init__(self, *, everywhere: bool, refused: tuple[str, ...] = ()) -> None:
        self.everywhere = everywhere
        self.refused = refused
        self.listed: list[str | None] = []

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        return ResourceType(api_version, kind, "services")

    def list_all(self, _kind: Any, *, namespace: str | None = None, labels: Any) -> Listing:
        self.listed.append(namespace)
        if namespace in self.refused or (namespace is None and not self.everywhere):
            raise NotAllowed("services is forbidden")
        return Listing([{"in": namespace, "metadata": {}}], "1")


def _list(
    monkeypatch: pytest.MonkeyPatch, client: _Client, namespaces: list[str], **options: bool
) -> list[list[dict[str, Any]]]:
    monkeypatch.setattr(clients, "client_for", lambda _: client)
    return objects.list_several(
        cluster_id=1, kinds=_KINDS, namespaces=namespaces, labels={"a": "b"}, **options
    )


def test_many_namespaces_are_one_listing_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _Client(everywhere=True)

    assert _list(monkeypatch, client, _NINE) == [[{"in": None, "metadata": {}}]]
    assert client.listed == [None]


@pytest.mark.parametrize("skip_refused", [False, True])
def test_a_role_in_each_teams_namespace_is_enough_for_many(
    monkeypatch: pytest.MonkeyPatch, *, skip_refused: bool
) -> None:
    client = _Client(everywhere=False)

    listed = _list(monkeypatch, client, _NINE, skip_refused=skip_refused)

    assert listed == [[{"in": name, "metadata": {}} for name in _NINE]]


def test_a_namespace_without_a_role_is_refused_or_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _Client(everywhere=False, refused=("team-4",))

    with pytest.raises(NotAllowed):
        _list(monkeypatch, client, _NINE)
    assert _list(monkeypatch, client, _NINE, skip_refused=True) == [[]]
