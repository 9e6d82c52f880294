"""Demos with all their real parts for the end-to-end tests of a run, and people signed in to them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person

# A line for each readiness poll would hide what matters.
logging.getLogger("httpx").setLevel(logging.WARNING)


# They mostly wait, rollouts for half of the time: one demo for all of them would outlast every other test.
_GROUPS = {
    "test_samples.py": "demo with samples",
    "test_readme.py": "two demos",
    **dict.fromkeys(
        ("test_baseline.py", "test_canary.py", "test_rollouts.py", "test_shadow.py"),
        "demo of rollouts",
    ),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs those of a group, so that there is one demo for them; starting it may be part of any test."""
    for item in items:
        if "/e2e/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group(_GROUPS.get(item.path.name, "demo")))
            item.add_marker(pytest.mark.timeout(1200))


# It ends with the last of these tests, and not with those of other features that its worker runs then.
@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    demo = DemoProcess(tmp_path_factory.mktemp("demo") / "var")
    try:
        demo.start()
        demo.clusters_at_first = Person(demo, "member").get("clusters")
        yield demo
    finally:
        if demo.process and demo.process.poll() is None:
            demo.stop()


@pytest.fixture(scope="package")
def member(demo: DemoProcess) -> Person:
    return Person(demo, "member")


@pytest.fixture(scope="package")
def lead(demo: DemoProcess) -> Person:
    return Person(demo, "lead")


@pytest.fixture(scope="module", autouse=True)
def _each_module_gives_its_gpus_back(member: Person) -> Iterator[None]:
    """The modules run in any order, and the demo has four T4 and two A10G for all of them."""
    before = _live_deployments(member)
    yield
    assert _live_deployments(member) - before <= {"filetype"}


def _live_deployments(member: Person) -> set[str]:
    rows = member.get("deployments?team=vision")["results"]
    return {row["name"] for row in rows if row["state"] not in {"retired", "rejected"}}


@pytest.fixture(scope="package")
def version(demo: DemoProcess, member: Person) -> dict[str, Any]:
    """Version 1 of vision/filetype, uploaded and verified."""
    return member.upload("filetype", demo.samples / "filetype.onnx", accuracy=0.99)


@pytest.fixture(scope="package")
def served(member: Person, lead: Person, version: dict[str, Any]) -> dict[str, Any]:
    """The deployment `filetype`, requested by the member and approved by the lead, ready."""
    change = member.request_deployment(version, "filetype")
    lead.approve(change)
    return member.wait_until_ready(change["deployment_id"])


@pytest.fixture
def classifier(demo: DemoProcess, served: dict[str, Any]) -> Classifier:
    return Classifier(demo, served["url"], "filetype")
