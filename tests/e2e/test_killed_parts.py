"""A part that dies during the journey delays it and loses nothing."""

from __future__ import annotations

import os
import signal
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for

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

    deployment = member.wait_until_ready(change["deployment_id"])
    classifier = Classifier(demo, deployment["url"], "filetype")
    wait_for("right answer", lambda: answers_right(classifier))
    after = wait_for(f"new process of {part}", lambda: demo.pid_of(part))
    assert after != before
    member.retire(deployment["id"], approved_by=lead)


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

    wait_for("right answer", lambda: answers_right(classifier))
    member.wait_until_ready(served["id"])
