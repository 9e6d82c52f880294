"""Try it: a request by fields or as JSON, the answer in words, the same request as code, and saved examples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.models import ModelVersion
from deployments.serving.gateways import inference
from deployments.serving.gateways.inference import Answer
from deployments.serving.services import try_it
from deployments.serving.services.try_it import TrialTarget
from portal.accounts.models import User
from tests.deployments import golden_requests
from tests.deployments.signed_in import HTMX, start_canary
from tests.deployments.world import World
from tests.open_fields import find_form, list_open_fields
from tests.page import page

TRY = "/vision/deployments/detector/try"
URL = "http://gateway.example/vision/detector/v2/models/detector/infer"
SignIn = Callable[[User], Client]
SIGNATURE = {
    "inputs": [
        {"name": "x", "dtype": "FP32", "dims": [-1, 2]},
        {"name": "tokens", "dtype": "INT64", "dims": [-1, -1]},
        {"name": "text", "dtype": "STRING", "dims": [-1, 1]},
    ],
    "outputs": [{"name": "scores", "dtype": "FP32", "dims": [-1, 3]}],
    "max_batch_size": 8,
    "class_names": ["cat", "dog", "owl"],
}
ENTERED = {
    "source": "inputs",
    "input-0": "1, 2.5",
    "input-1": "5, 6, 7",
    "shape-1": "",
    "input-2": "red\r\nblue",
}
SENT = {
    "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2.5]},
        {"name": "tokens", "datatype": "INT64", "shape": [1, 3], "data": [5, 6, 7]},
        {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["red\nblue"]},
    ]
}
SCORES = {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.25, 0.625, 0.125]}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Keep the requests that the gateway was sent, and answer them with scores."""
    calls: list[tuple[str, Any]] = []

    def answer(url: str, body: bytes) -> Answer:
        calls.append((url, json.loads(body)))
        content = json.dumps({"model_name": "detector", "outputs": [SCORES]}).encode()
        return Answer(200, content, is_cut=False, milliseconds=12.34)

    monkeypatch.setattr(inference, "post_json", answer)
    return calls


@pytest.fixture
def viewer(world: World, signed_in: SignIn) -> Client:
    ModelVersion.objects.update(signature=SIGNATURE)
    world.serving()
    return signed_in(world.viewer)


def test_each_input_has_a_field_and_json_is_one_fold_away(viewer: Client) -> None:
    shown = page(viewer.get(TRY))

    form = find_form(shown, "input-0")
    assert list_open_fields(form) == ["input-0", "input-1", "shape-1", "input-2"]
    assert [shown.field(f"input-{index}").value for index in range(3)] == ["0, 0", "0", ""]
    assert "x FP32 · any \N{MULTIPLICATION SIGN} 2" in form.text
    assert json.loads(form.group("As JSON").field("body").value) == {
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0, 0]},
            {"name": "tokens", "datatype": "INT64", "shape": [1, 1], "data": [0]},
            {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [""]},
        ]
    }


def test_what_is_entered_is_sent_and_shown_as_json_and_as_code(
    viewer: Client, sent: list[tuple[str, Any]]
) -> None:
    shown = page(viewer.post(TRY, ENTERED))

    assert sent == [(URL, SENT)]
    assert json.loads(shown.field("body").value) == SENT
    assert shown.field("input-0").value == "1, 2.5"
    assert json.dumps(SENT) in shown.part("curl-text").verbatim
    assert f'"{URL}"' in shown.part("python-text").verbatim
    assert f"const body = {json.dumps(SENT)};" in shown.part("javascript-text").verbatim
    nested = {"x": [[1, 2.5]], "tokens": [[5, 6, 7]], "text": [["red\nblue"]]}
    command = f"slipway call vision/detector '{json.dumps(nested)}'\n"
    assert shown.part("slipway-text").verbatim == command


def test_json_is_sent_and_shown_in_the_fields(viewer: Client, sent: list[tuple[str, Any]]) -> None:
    shown = page(viewer.post(TRY, {**ENTERED, "source": "json", "body": json.dumps(SENT)}))
    other = {"inputs": [{**SENT["inputs"][0], "data": [3, 4]}, *SENT["inputs"][1:]]}
    changed = page(viewer.post(TRY, {**ENTERED, "source": "json", "body": json.dumps(other)}))

    assert [body for _, body in sent] == [SENT, other]
    assert [shown.field("input-0").value, changed.field("input-0").value] == ["1, 2.5", "3, 4"]
    assert shown.field("input-2").value == "red\nblue"


@pytest.mark.parametrize(
    ("source", "swapped"),
    [
        ("inputs", ["answer", "request-json", "request-code"]),
        ("json", ["answer", "request-inputs", "request-code"]),
    ],
)
def test_the_answer_brings_the_other_forms_of_the_request(
    viewer: Client, sent: list[tuple[str, Any]], source: str, swapped: list[str]
) -> None:
    posted = {**ENTERED, "source": source, "body": json.dumps(SENT)}

    part = page(viewer.post(TRY, posted, **HTMX, HTTP_HX_TARGET="answer"))

    assert sent == [(URL, SENT)]
    parts = [one for one in part.children if not isinstance(one, str)]
    assert [one.attributes["id"] for one in parts] == swapped
    assert ["hx-swap-oob" in one.attributes for one in parts] == [False, True, True]


def test_inputs_that_make_no_request_are_refused_at_their_fields(
    viewer: Client, sent: list[tuple[str, Any]]
) -> None:
    wrong = {**ENTERED, "input-0": "1, two", "shape-1": "1, 2"}

    answer = viewer.post(TRY, wrong)
    part = page(viewer.post(TRY, wrong, **HTMX, HTTP_HX_TARGET="answer"))

    assert (answer.status_code, sent) == (422, [])
    shown = page(answer)
    assert shown.field("input-0").attributes["aria-invalid"] == "true"
    assert "Enter finite numbers, not “two”." in shown.part("id_input-0_error").text
    assert "Enter 2 values for this shape, not 3." in shown.part("id_input-1_error").text
    assert "x: Enter finite numbers, not “two”." in part.part("answer").text
    assert part.part("request-inputs").field("input-0").value == "1, two"


def test_the_answer_names_classes_and_folds_the_raw_response(
    viewer: Client, sent: list[tuple[str, Any]]
) -> None:
    shown = page(viewer.post(TRY, ENTERED)).part("answer")

    assert len(sent) == 1
    (row,) = shown.rows
    assert row["Output"] == "scores FP32"
    assert row["Shape"] == "1 \N{MULTIPLICATION SIGN} 3"
    assert row["Answer"] == "dog 0.625 cat 0.25 owl 0.125"
    assert "[ 0.25, 0.625, 0.125 ]" in shown.group("Raw response").text


def test_classes_are_not_named_where_two_versions_with_other_classes_may_answer(
    world: World, signed_in: SignIn, sent: list[tuple[str, Any]]
) -> None:
    deployment, _ = start_canary(world)
    ModelVersion.objects.update(signature=SIGNATURE)
    ModelVersion.objects.filter(pk=world.version2.pk).update(
        signature={**SIGNATURE, "class_names": ["red", "green", "blue"]}
    )
    deployment.refresh_from_db()
    client = signed_in(world.viewer)

    shown = page(client.post(TRY, {**ENTERED, "target": "gateway"}))

    assert len(sent) == 1
    assert shown.part("answer").rows[0]["Answer"] == "0.25, 0.625, 0.125"
    trial = try_it.TrialResponse(None, 200, json.dumps({"outputs": [SCORES]}), 1, False, 1)
    likeliest = []
    for target in (TrialTarget.STABLE, TrialTarget.CANDIDATE):
        described = try_it.describe_answer(deployment, trial, target)
        assert described is not None
        likeliest.append(described.outputs[0].items[0].classes[0].name)
    assert likeliest == ["dog", "green"]


def test_a_golden_request_is_an_example(
    world: World, signed_in: SignIn, sent: list[tuple[str, Any]]
) -> None:
    golden_requests.serving_with_signature(world)
    golden_requests.save(world, "three dogs", x=3.0)
    client = signed_in(world.viewer)

    link = page(client.get(TRY)).link("three dogs")
    shown = page(client.get(f"{TRY}{link}"))

    assert link == "?example=three+dogs"
    assert shown.field("input-0").value == "3.0"
    assert json.loads(shown.field("body").value) == golden_requests.request_of(3.0)
    assert json.dumps(golden_requests.request_of(3.0)) in shown.part("curl-text").verbatim
    gone = page(client.get(f"{TRY}?example=two"))
    assert "The golden request “two” does not exist." in gone.text
    assert gone.field("input-0").value == "0"
    assert sent == []


def test_examples_cost_one_query_however_many_there_are(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    golden_requests.serving_with_signature(world)
    client = signed_in(world.viewer)
    client.get(TRY)
    with CaptureQueriesContext(connection) as without:
        client.get(TRY)
    for number in range(5):
        golden_requests.save(world, f"example {number}")

    with django_assert_num_queries(len(without)):
        shown = page(client.get(TRY))

    assert [name for name in shown.links if name.startswith("example")] == [
        f"example {number}" for number in range(5)
    ]


def test_an_example_that_the_fields_cannot_express_is_shown_as_json(
    world: World, signed_in: SignIn
) -> None:
    golden_requests.serving_with_signature(world)
    row = golden_requests.save(world, "two items")
    row.request = {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [1.0, 2.0]}]
    }
    type(row).objects.filter(pk=row.pk).update(request=row.request)

    shown = page(signed_in(world.viewer).get(f"{TRY}?example=two+items"))

    assert list_open_fields(find_form(shown, "body")) == ["body"]
    assert json.loads(shown.field("body").value) == row.request
    assert shown.link("Start from zeros") == TRY


def test_a_model_without_a_known_signature_takes_json(
    world: World, signed_in: SignIn, sent: list[tuple[str, Any]]
) -> None:
    ModelVersion.objects.update(signature={})
    world.serving()

    shown = page(signed_in(world.viewer).get(TRY))
    answer = signed_in(world.viewer).post(TRY, {**ENTERED, "body": '{"inputs": []}'})

    assert list_open_fields(find_form(shown, "body")) == ["body"]
    assert answer.status_code == 200
    assert sent == [(URL, {"inputs": []})]


def test_a_large_input_is_sent_as_zeros_and_not_written_out(
    world: World, signed_in: SignIn, sent: list[tuple[str, Any]]
) -> None:
    pixels = {"name": "x", "dtype": "FP32", "dims": [3, 224, 224]}
    ModelVersion.objects.update(signature={**SIGNATURE, "inputs": [pixels], "max_batch_size": 0})
    world.serving()
    client = signed_in(world.viewer)

    shown = client.get(TRY)
    answer = client.post(TRY, {"source": "inputs", "input-0": ""})

    assert "Leave empty to send 150,528 zeros." in page(shown).text
    assert "save its JSON as request.json first" in page(shown).text
    assert "This request is too long to be shown here." in page(answer).text
    assert max(len(shown.content), len(answer.content)) < 100_000
    assert sent[0][1]["inputs"][0]["data"] == [0] * 150_528


def test_a_picture_is_sent_as_binary_data(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, bytes, Mapping[str, str]]] = []

    def answer(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        calls.append((url, body, headers))
        return Answer(200, json.dumps({"outputs": [SCORES]}).encode(), False, 12.34)

    monkeypatch.setattr(inference, "post", answer)
    pixels = {"name": "x", "dtype": "FP32", "dims": [-1, 3, 640, 640]}
    ModelVersion.objects.update(signature={**SIGNATURE, "inputs": [pixels]})
    world.serving()
    client = signed_in(world.viewer)
    content = bytes(3 * 640 * 640 * 4)

    shown = page(client.get(TRY))
    sent = page(
        client.post(TRY, {"source": "inputs", "input-0": "", "content-0": BytesIO(content)})
    )

    form = find_form(shown, "input-0")
    assert form.attributes["enctype"] == "multipart/form-data"
    ((url, body, headers),) = calls
    length = int(headers["Inference-Header-Content-Length"])
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 3, 640, 640]}
    size = {"binary_data_size": len(content)}
    assert (url, headers["Content-Type"]) == (URL, "application/octet-stream")
    assert json.loads(body[:length]) == {"inputs": [{**tensor, "parameters": size}]}
    assert body[length:] == content
    assert sent.part("answer").rows[0]["Answer"] == "dog 0.625 cat 0.25 owl 0.125"
    assert "Save as golden request" not in sent.buttons
    assert sent.field("body").value == ""
    assert f"-H 'Inference-Header-Content-Length: {length}'" in sent.part("curl-text").verbatim
    assert sent.buttons["Save request.bin"].attributes["data-head"] == body[:length].decode()


def test_what_a_request_cannot_carry_is_refused(
    world: World, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "post", lambda *_: pytest.fail("was sent"))
    sound = {"name": "x", "dtype": "FP32", "dims": [-1, -1]}
    ModelVersion.objects.update(
        signature={**SIGNATURE, "inputs": [sound]}, metadata={"labels": {"sampling_rate": "16000"}}
    )
    world.serving()
    client = signed_in(world.viewer)
    content = BytesIO(bytes(16_000_004))

    shown = page(client.get(TRY))
    answer = client.post(TRY, {"source": "inputs", "input-0": "", "content-0": content})

    assert "Recording for x" in shown.text
    assert answer.status_code == 422
    assert "the limit here is 16,000,000" in page(answer).part("answer").text
