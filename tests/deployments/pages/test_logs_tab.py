"""The Logs tab: all pods or one, filtered on the server, followed, as a file, with the events of the pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from deployments.delivery.services import pod_logs
from fleet.kube.domain.errors import ObjectNotFound, Unreachable
from fleet.models import Pod, Workload
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import Part, page

LOGS = "/vision/deployments/detector/logs"
FIRST, SECOND = "detector-r1-5d8f7-x2x9z", "detector-r1-5d8f7-k8k2m"
SignIn = Callable[[User], Client]


def add_pod(world: World, name: str, **fields: Any) -> None:
    Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=Workload.objects.get(name="detector-r1"),
        namespace="vision",
        name=name,
        uid=name,
        phase="Running",
        is_ready=True,
        created_at=world.clock.at - timedelta(minutes=2),
        **fields,
    )


@pytest.fixture
def two_pods(world: World) -> World:
    world.serving()
    add_pod(world, FIRST, restart_count=1)
    add_pod(world, SECOND)
    world.cluster.logs[FIRST] = (
        "2026-11-29T09:41:22.1Z I1129 09:41:22.1 1 a.cc:1] first up\n"
        "2026-11-29T09:41:24.5Z E1129 09:41:24.5 1 a.cc:2] <lost> the GPU\n"
        "2026-11-29T09:41:24.6Z   at gpu.cc\n"
    )
    world.cluster.logs[SECOND] = "2026-11-29T09:41:23Z INFO:     second up\n"
    world.cluster.logs[f"{FIRST} previous"] = "2026-11-29T08:00:00Z out of memory\n"
    return world


def lines_of(shown: Part) -> list[str]:
    return shown.part("log").verbatim.splitlines()


def test_all_pods_are_shown_together_by_time(two_pods: World, signed_in: SignIn) -> None:
    shown = page(signed_in(two_pods.viewer).get(LOGS))

    assert lines_of(shown) == [
        "x2x9z I1129 09:41:22.1 1 a.cc:1] first up",
        "k8k2m INFO:     second up",
        "x2x9z E1129 09:41:24.5 1 a.cc:2] <lost> the GPU",
        "x2x9z   at gpu.cc",
    ]
    assert shown.part("logs").text.endswith("4 lines Download")
    assert shown.field("pod").options == ["", SECOND, FIRST]
    assert "2026-11-29 09:41:22 UTC" in shown.titles
    assert FIRST in shown.titles


def test_one_pod_is_shown_without_its_name(two_pods: World, signed_in: SignIn) -> None:
    shown = page(signed_in(two_pods.viewer).get(LOGS, {"pod": SECOND}))

    assert lines_of(shown) == ["INFO:     second up"]
    assert shown.field("pod").value == SECOND
    assert signed_in(two_pods.viewer).get(LOGS, {"pod": "of-another-team"}).status_code == 404


def test_lines_are_filtered_by_level_and_text(two_pods: World, signed_in: SignIn) -> None:
    client = signed_in(two_pods.viewer)

    errors = page(client.get(LOGS, {"level": "error"}))
    found = page(client.get(LOGS, {"q": "LOST"}))
    none = page(client.get(LOGS, {"level": "error", "q": "second"}))

    assert lines_of(errors) == [
        "x2x9z E1129 09:41:24.5 1 a.cc:2] <lost> the GPU",
        "x2x9z   at gpu.cc",
    ]
    assert errors.part("logs").text.endswith("2 of 4 lines Download")
    assert [mark.text for mark in found.all("mark")] == ["lost"]
    assert found.fields("q")[-1].value == "LOST"
    assert "None of the last 4 lines matches." in none.text


def test_a_number_of_lines_counts_for_all_pods(two_pods: World, signed_in: SignIn) -> None:
    two_pods.cluster.logs[FIRST] = "".join(
        f"2026-11-29T09:00:00Z line {number}\n" for number in range(300)
    )

    shown = page(signed_in(two_pods.viewer).get(LOGS))

    assert len(lines_of(shown)) == 100
    assert lines_of(shown)[0] == "x2x9z line 201"
    assert lines_of(shown)[-1] == "k8k2m INFO:     second up"


def test_the_previous_container_is_shown_and_not_followed(
    two_pods: World, signed_in: SignIn
) -> None:
    client = signed_in(two_pods.viewer)

    live = page(client.get(LOGS))
    before = page(client.get(LOGS, {"previous": "1"}))
    never = page(client.get(LOGS, {"previous": "1", "pod": SECOND}))

    assert not live.field("previous").is_chosen
    assert lines_of(before) == ["out of memory"]
    assert before.field("previous").is_chosen
    assert "hx-get" not in before.part("logs").attributes
    assert f"{SECOND}: The container has no previous run." in never.text


def test_a_poll_keeps_the_filter_and_reads_no_events(two_pods: World, signed_in: SignIn) -> None:
    client = signed_in(two_pods.viewer)
    shown = page(client.get(LOGS, {"q": "second", "level": "info", "lines": "500"}))
    following = shown.part("logs").attributes
    assert following["hx-get"] == f"{LOGS}?lines=500&level=info&q=second"
    two_pods.cluster.logs[SECOND] += "2026-11-29T09:41:30Z second again\n"
    two_pods.cluster.list_all = lambda *_, **__: pytest.fail("read")  # type: ignore[method-assign]

    part = page(client.get(following["hx-get"], **HTMX, HTTP_HX_TARGET="logs"))

    assert not part.is_whole_page
    assert lines_of(part) == ["k8k2m INFO:     second up", "k8k2m second again"]
    assert part.part("logs").attributes["hx-get"] == following["hx-get"]


def test_the_shown_lines_are_downloaded_with_time_and_pod(
    two_pods: World, signed_in: SignIn
) -> None:
    client = signed_in(two_pods.viewer)

    shown = page(client.get(LOGS, {"level": "error"}))
    file = client.get(shown.link("Download"))
    lone = client.get(LOGS, {"pod": SECOND, "download": "1"})

    assert file["Content-Type"] == "text/plain; charset=utf-8"
    stamp = f"{two_pods.clock.at:%Y%m%d-%H%M%S}"
    assert file["Content-Disposition"] == f'attachment; filename="detector-{stamp}.log"'
    assert file.content.decode() == (
        f"2026-11-29T09:41:24.500000Z {FIRST} E1129 09:41:24.5 1 a.cc:2] <lost> the GPU\n"
        f"2026-11-29T09:41:24.600000Z {FIRST}   at gpu.cc\n"
    )
    assert lone.content == b"2026-11-29T09:41:23.000000Z INFO:     second up\n"


def test_a_pod_that_is_gone_leaves_the_others(
    two_pods: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = two_pods.cluster.pod_log

    def pod_log(namespace: str, pod: str, **options: Any) -> str:
        if pod == FIRST:
            raise ObjectNotFound("pods not found")
        return read(namespace, pod, **options)

    monkeypatch.setattr(two_pods.cluster, "pod_log", pod_log)

    shown = page(signed_in(two_pods.viewer).get(LOGS))

    assert lines_of(shown) == ["k8k2m INFO:     second up"]
    assert f"{FIRST}: The pod is gone. Choose another pod." in shown.text


def test_a_cluster_that_does_not_answer_is_said_once(two_pods: World, signed_in: SignIn) -> None:
    two_pods.cluster.fail_with = Unreachable("connection refused")

    shown = page(signed_in(two_pods.viewer).get(LOGS))

    assert shown.text.count("The cluster did not return the log: connection refused") == 1
    assert "The cluster did not return the events: connection refused" in shown.text


def test_no_more_is_read_than_a_page_needs(
    two_pods: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_logs, "MOST_PODS", 1)

    shown = page(signed_in(two_pods.viewer).get(LOGS))

    assert lines_of(shown) == ["INFO:     second up"]
    assert "Shown are 1 of 2 pods. Choose a pod to see others." in shown.text


def test_of_a_log_above_the_limit_the_newest_lines_are_shown(
    two_pods: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_logs, "_MOST_BYTES", 400)
    two_pods.cluster.logs[SECOND] = "".join(
        f"2026-11-29T09:41:23.{number:03}Z line {number}\n" for number in range(200)
    )

    shown = page(signed_in(two_pods.viewer).get(f"{LOGS}?pod={SECOND}"))

    lines = lines_of(shown)
    assert lines == [f"line {number}" for number in range(200 - len(lines), 200)]
    assert len(lines) > 5
    assert f"{SECOND}: only the newest lines, 1 MiB of them, are shown." in shown.text


def test_the_beginning_of_a_line_above_the_limit_is_shown(
    two_pods: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_logs, "_MOST_BYTES", 60)
    two_pods.cluster.logs[SECOND] = "INFO: before\n" * 5 + f"INFO: {'x' * 100}\n"

    shown = page(signed_in(two_pods.viewer).get(f"{LOGS}?pod={SECOND}"))

    assert lines_of(shown) == [f"INFO: {'x' * 54}"]


def test_events_of_the_pods_stand_beside_their_logs(two_pods: World, signed_in: SignIn) -> None:
    for name, pod in (("e1", FIRST), ("e2", "of-another")):
        two_pods.cluster.objects["Event", "vision", name] = {
            "metadata": {"name": name, "namespace": "vision"},
            "involvedObject": {"kind": "Pod", "name": pod},
            "type": "Warning",
            "reason": "BackOff",
            "message": f"restarting {pod}",
            "count": 4,
            "lastTimestamp": (two_pods.clock.at - timedelta(minutes=5)).isoformat(),
        }

    shown = page(signed_in(two_pods.viewer).get(LOGS))

    (event,) = (item for item in shown.all("li") if "BackOff" in item.text)
    assert event.text == f"BackOff Warning x2x9z · restarting {FIRST} · 4 times 5 min ago"


def test_a_deployment_without_pods_has_no_log(world: World, signed_in: SignIn) -> None:
    world.serving()

    shown = page(signed_in(world.viewer).get(LOGS))

    assert "No pods are running." in shown.part("logs").text
    assert "hx-get" not in shown.part("logs").attributes
