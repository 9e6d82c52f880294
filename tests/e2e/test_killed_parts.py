"""Parts that die during the journey delay it and lose nothing. Two at once: one is less, and so is proven with it."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for

SCRIPT = b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n"
PAIRS = (("worker", "valkey"), ("beat", "gateway"), ("watcher", "s3"), ("cluster", "web"))


def answers_right(classifier: Classifier) -> bool:
    try:
        return classifier.kind_of(SCRIPT) == "python"
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("parts", PAIRS, ids="-".join)
def test_killed_parts_are_started_again_and_the_journey_ends_well(
    parts: tuple[str, str],
    demo: DemoProcess,
    member: Person,
    lead: Person,
    version: dict[str, Any],
) -> None:
    name = f"without-{'-'.join(parts)}"
    change = member.request_deployment(version, name, engine="triton")
    before = {part: demo.pid_of(part) for part in parts}
    assert all(before.values())
    lead.approve(change)

    for pid in before.values():
        os.kill(pid, signal.SIGKILL)

    deployment = member.wait_until_ready(change["deployment_id"])
    classifier = Classifier(demo, deployment["url"], "filetype")
    wait_for("right answer", lambda: answers_right(classifier))
    for part, old in before.items():
        assert wait_for(f"new process of {part}", partial(demo.pid_of, part)) != old
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
