"""The demo as `make demo` starts it: with sample deployments that serve, and advice on their made-up history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    demo = DemoProcess(tmp_path_factory.mktemp("samples") / "var", has_samples=True)
    try:
        demo.start()
        yield demo
    finally:
        if demo.process and demo.process.poll() is None:
            demo.stop()


@pytest.fixture(scope="module")
def member(demo: DemoProcess) -> Person:
    return Person(demo, "member")


@pytest.fixture(scope="module")
def lead(demo: DemoProcess) -> Person:
    return Person(demo, "lead")


def test_samples_serve_and_a_click_on_their_advice_is_applied(
    demo: DemoProcess, member: Person, lead: Person
) -> None:
    wait_for("samples", lambda: "five deployments with two months of made-up use" in demo.said)

    advice = {item["kind"]: item for item in member.get("advice")}
    kinds = {
        *("cheaper-instance", "fewer-replicas", "idle", "spot"),
        *("larger-batches", "multi-model"),
    }
    assert kinds <= advice.keys()
    every = {item["kind"]: item for item in Person(demo, "admin").get("advice")}
    assert every.keys() - advice.keys() == {"unused-node"}
    assert all(_is_marked(item) for item in every.values())
    assert advice["fewer-replicas"]["saving_amount"] == "734.38"
    rows = member.get("deployments?team=samples")["results"]
    classifier = next(row for row in rows if row["name"] == "classifier")
    address = member.get(f"deployments/{classifier['id']}")["url"]
    assert Classifier(demo, address, "filetype").kind_of(b"import os\nprint(os.name)\n" * 9)

    change = member.post(f"advice/{advice['fewer-replicas']['id']}/request")
    lead.approve(change)

    def is_done() -> bool:
        shown = lead.try_get(f"changes/{change['id']}")
        return shown is not None and shown["state"] == "done"

    wait_for("one replica", is_done)
    nodes = {row["name"]: row for row in member.get("nodes")["results"]}
    assert {"demo-spot-1", "demo-lab-1", "local-t4-1"} <= nodes.keys()


def _is_marked(item: dict[str, Any]) -> bool:
    return {"name": "Demo data", "value": "168 of 168 hours"} in item["evidence"]
