"""The tabs of a deployment, with a cluster that answers and one that does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from deployments.models import Deployment
from deployments.serving.gateways import inference
from deployments.serving.gateways.inference import Answer, GatewayUnreachable
from deployments.serving.services import try_it
from fleet.models import Pod, Workload
from fleet.telemetry.selectors import traffic
from portal.accounts.models import User
from tests.deployments.signed_in import HTMX, start_canary
from tests.deployments.world import World
from tests.page import page

ONE = "/vision/deployments/detector"
SignIn = Callable[[User], Client]


def test_figures_without_a_measurement_are_not_known(world: World, signed_in: SignIn) -> None:
    world.serving()

    shown = page(signed_in(world.viewer).get(ONE)).text

    assert shown.count("not known") == 4
    assert "0.0 /s" not in shown


def test_a_polled_part_comes_without_the_frame(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.viewer)

    polled = page(client.get(ONE, **HTMX, HTTP_HX_TARGET="deployment-head"))

    assert not polled.is_whole_page
    for part in ("deployment-head", "figures", "overview-now", "overview-charts"):
        assert polled.part(part).text


@pytest.mark.parametrize(
    ("state", "is_busy", "trigger"),
    [
        ("ready", False, "every 15s"),
        ("stopped", False, "every 15s"),
        ("ready", True, "every 4s"),
        ("progressing", False, "every 4s"),
        ("degraded", False, "every 4s"),
    ],
)
def test_the_head_is_polled_seldom_while_nothing_moves(
    world: World, signed_in: SignIn, state: str, *, is_busy: bool, trigger: str
) -> None:
    if is_busy:
        start_canary(world)
    else:
        world.serving()
    Deployment.objects.update(state=state)

    answer = signed_in(world.viewer).get(ONE, **HTMX, HTTP_HX_TARGET="deployment-head")

    assert page(answer).part("deployment-head").attributes["hx-trigger"] == trigger


def test_polled_figures_are_those_of_the_page_without_its_charts(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()
    client = signed_in(world.viewer)
    shown = page(client.get(ONE))
    monkeypatch.delattr(traffic, "read_slots")
    next_poll = shown.part("deployment-head").attributes["hx-get"]

    part = page(client.get(next_poll, **HTMX, HTTP_HX_TARGET="deployment-head"))

    assert part.part("figures").text == shown.part("figures").text
    assert next_poll == part.part("deployment-head").attributes["hx-get"]


def test_two_revisions_are_compared_line_by_line(world: World, signed_in: SignIn) -> None:
    start_canary(world)

    shown = page(signed_in(world.viewer).get(f"{ONE}/revisions?from=1&to=2"))

    assert "label: detector:1" in {line.text for line in shown.all("del")}
    assert "label: detector:2" in {line.text for line in shown.all("ins")}


def test_a_lone_revision_offers_no_comparison(world: World, signed_in: SignIn) -> None:
    world.serving()

    (row,) = page(signed_in(world.viewer).get(f"{ONE}/revisions")).rows

    assert row["Serving"] == "1 GPU of g5.xlargeKServe · Triton, 1 replica"
    assert not {"From", "To"} & set(row)


def test_a_pod_that_waits_says_why(world: World, signed_in: SignIn) -> None:
    world.serving()
    Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=Workload.objects.get(name="detector-r1"),
        namespace="vision",
        name="detector-r1-abc",
        uid="u1",
        phase="Pending",
        reason="Unschedulable",
        message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        created_at=world.clock.at - timedelta(minutes=2),
    )

    page = signed_in(world.viewer).get(f"{ONE}/timeline").content.decode()

    assert "0/3 nodes are available: 3 Insufficient nvidia.com/gpu." in page


def test_a_trial_shows_the_answer_and_how_long_it_took(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()
    sent: list[tuple[str, bytes]] = []

    def answer(url: str, body: bytes) -> Answer:
        sent.append((url, body))
        return Answer(200, b'{"outputs": [{"name": "y", "data": [1, 2]}]}', False, 12.34)

    monkeypatch.setattr(inference, "post_json", answer)
    body = json.dumps({"inputs": []})

    page = signed_in(world.viewer).post(f"{ONE}/try", {"body": body}).content.decode()

    assert sent == [
        ("http://gateway.example/vision/detector/v2/models/detector/infer", body.encode())
    ]
    assert "12.3 ms" in page
    assert "[ 1, 2 ]" in page


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 422),
        ("[]", 422),
        ('{"a": "%s"}' % ("x" * try_it.MAX_REQUEST_BYTES), 422),
        ("[" * 100_000, 422),
        ('{"a":' * 65 + "1" + "}" * 65, 422),
        ('{"a": "\\ud800"}', 422),
        ('{"a": NaN}', 422),
        ('{"a": 1e999}', 422),
        ('{"a": %s}' % ("9" * 5000), 422),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_body_that_is_no_request_is_not_sent(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, body: str, status: int
) -> None:
    world.serving()
    monkeypatch.setattr(inference, "post_json", lambda *_: pytest.fail("was sent"))

    answer = signed_in(world.viewer).post(f"{ONE}/try", {"body": body})

    assert answer.status_code == status


def test_an_answer_that_is_nested_without_end_is_shown_as_it_came(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()
    text = "[" * 100_000
    monkeypatch.setattr(
        inference, "post_json", lambda *_: Answer(200, text.encode(), is_cut=False, milliseconds=1)
    )

    page = signed_in(world.viewer).post(f"{ONE}/try", {"body": "{}"})

    assert page.status_code == 200
    assert text[:100] in page.content.decode()


def test_a_gateway_that_does_not_respond_is_reported(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.serving()

    def refuse(*_: object) -> Answer:
        raise GatewayUnreachable("connection refused")

    monkeypatch.setattr(inference, "post_json", refuse)

    answer = signed_in(world.viewer).post(f"{ONE}/try", {"body": "{}"})

    assert answer.status_code == 503
    assert "connection refused" in answer.content.decode()
