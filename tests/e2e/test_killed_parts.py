"""A part that dies during the journey delays it and loses nothing."""

from __future__ import annotations

import os
import signal
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.demo_process import DemoProcess, wait_for
from tests.e2e.rest import Classifier, Person

SCRIPT = b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n"
PARTS = ("worker", "beat", "watcher", "valkey", "gateway", "cluster", "s3", "web")


def answers_right(classifier: Classifier) -> bool:
    try:
        return classifier.kind_of(SCRIPT) == "python"
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("part", PARTS)
def test_killed_part_is_started_again_and_the_journey_ends_well(
    part: str, demo: DemoProcess, member: Person, lead: Person, version: dict[str, Any]
) -> None:
    change = member.request_deployment(version, f"without-{part}", engine="triton")
    before = demo.pid_of(part)
    assert before
    lead.approve(change)

    os.kill(before, signal.SIGKILL)

    deployment = member.wait_until_ready(change["deployment_id"], seconds=150)
    classifier = Classifier(demo, deployment["url"], "filetype")
    wait_for("right answer", lambda: answers_right(classifier))
    after = wait_for(f"new process of {part}", lambda: demo.pid_of(part))
    assert after != before
    _retire(member, lead, deployment["id"])


def test_killed_triton_is_started_again(
    demo: DemoProcess, member: Person, served: dict[str, Any], classifier: Classifier
) -> None:
    victims = [
        process
        for process in demo.processes()
        if "tritonserver" in process.name() and "filetype-r" in " ".join(process.cmdline())
    ]
    assert victims

    for victim in victims:
        victim.send_signal(signal.SIGKILL)
    psutil.wait_procs(victims, 10)

    wait_for("right answer", lambda: answers_right(classifier), seconds=90)
    member.wait_until_ready(served["id"])


def _retire(member: Person, lead: Person, deployment_id: int) -> None:
    """Gives its GPU back, so that the next test finds one."""
    lead.approve(member.post(f"deployments/{deployment_id}/changes", {"kind": "retire"}))

    def is_retired() -> bool:
        deployment = member.try_get(f"deployments/{deployment_id}")
        return deployment is not None and deployment["state"] == "retired"

    wait_for("end of the deployment", is_retired)
