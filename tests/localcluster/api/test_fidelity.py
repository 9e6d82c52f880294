"""The embedded API server says what a real one says, to good and to broken objects."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway_localcluster import bootstrap
from slipway_localcluster.pods import NoPods
from slipway_localcluster.schemas import lookup
from slipway_localcluster.server import build_app
from slipway_localcluster.store import Store
from slipway_localcluster.watch import Hub
from tests.fidelity import table
from tests.fidelity.change import clean_up_of, requests_of
from tests.fidelity.sending import request_of, verdict_of

_NOT_SERVED = {"status": 404, "reason": "NotFound"}
_FOLDER = os.environ.get("SLIPWAY_CRD_DIR", "")
_DOCUMENT = Path(__file__).parents[3] / "docs" / "localcluster.md"


@pytest.fixture(
    params=[
        "",
        pytest.param(
            _FOLDER,
            marks=pytest.mark.skipif(not _FOLDER, reason="SLIPWAY_CRD_DIR is not set"),
        ),
    ],
    ids=["own schemas", "published schemas"],
)
def schemas(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SLIPWAY_CRD_DIR", request.param)
    lookup.schema_of.cache_clear()
    yield
    lookup.schema_of.cache_clear()


def _client(store: Store) -> httpx.AsyncClient:
    app = build_app(store, Hub(store), access=NoPods(), token="t")
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="https://local",
        headers={"Authorization": "Bearer t"},
    )


async def _send_all(store: Store) -> dict[str, Any]:
    async with _client(store) as client:
        answers = {
            row.name: await client.request(**request_of(row, "default")) for row in table.ROWS
        }
    return {name: verdict_of(answer) for name, answer in answers.items()}


@pytest.mark.usefixtures("schemas")
def test_each_object_of_the_table_gets_the_verdict_of_a_real_server(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db", has_node_agent=False)
    bootstrap.seed(store)
    before = store.revision
    expected = table.recorded()
    for row in table.ROWS:
        if row.manifest["kind"] in table.NOT_SERVED:
            expected[row.name] = _NOT_SERVED

    said = asyncio.run(_send_all(store))

    wrong = {
        name: (verdict, expected[name])
        for name, verdict in said.items()
        if verdict != expected[name]
    }
    assert wrong == {}
    assert store.revision == before
    store.close()


async def _change_all(store: Store) -> dict[str, Any]:
    async with _client(store) as client:
        verdicts = {}
        for change in table.CHANGES:
            before, judged = requests_of(change, "default")
            for request in before:
                answer = await client.request(**request)
                assert answer.is_success, (change.name, answer.text)
            verdicts[change.name] = verdict_of(await client.request(**judged))
            for request in clean_up_of(change, "default"):
                await client.request(**request)
    return verdicts


@pytest.mark.usefixtures("schemas")
def test_each_change_gets_the_verdict_of_a_real_server(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db", has_node_agent=False)
    bootstrap.seed(store)
    expected = table.recorded(table.RECORDED_CHANGES)

    said = asyncio.run(_change_all(store))

    wrong = {
        name: (verdict, expected[name])
        for name, verdict in said.items()
        if verdict != expected[name]
    }
    assert wrong == {}
    store.close()


def test_the_table_is_complete_and_the_differences_are_documented() -> None:
    verdicts = table.recorded()
    broken = [name for name, verdict in verdicts.items() if verdict["status"] != "accepted"]
    section = _DOCUMENT.read_text().partition("### Differences from a real API server")[2]
    listed = re.findall(r"^\d\. .*", section.partition("\n### ")[0], re.MULTILINE)

    assert [row.name for row in table.ROWS] == list(verdicts)
    assert len(broken) > 150
    assert [change.name for change in table.CHANGES] == list(table.recorded(table.RECORDED_CHANGES))
    assert 1 <= len(listed) <= 5
    assert all(kind in section for kind in table.NOT_SERVED)
