"""A model with thousands of inputs: pages and lists stay small, the rest is a page or a file away."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.domain import comparison, example_requests, signatures
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.triton_config import render
from deployments.serving.domain import inference_call
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload
from tests.fixtures import hostile_graphs
from tests.page import page

pytestmark = pytest.mark.django_db
COUNT = 20_000
PAGE = "/vision/models/detector/1"


@pytest.fixture
def wide(verified: Upload) -> ModelVersion:
    """A version with 20,000 inputs, as its verification leaves it."""
    version = verified(onnx_models.linear())
    inputs = tuple(Tensor(f"feature_{number:05}", "FP32", (2,)) for number in range(COUNT))
    signature = Signature(inputs=inputs, outputs=(Tensor("y", "FP32", (2,)),))
    ModelVersion.objects.filter(pk=version.pk).update(
        signature=signature.to_json(), config_pbtxt=render(model="detector", signature=signature)
    )
    version.refresh_from_db()
    return version


def test_the_page_of_a_version_is_bounded_and_pages_the_rest(
    people: People, wide: ModelVersion, client: Client
) -> None:
    client.force_login(people.viewer)

    answer = client.get(PAGE)
    first = page(answer)
    last = page(client.get(f"{PAGE}?tensors=201")).part("signature")

    assert len(answer.content) < 150_000
    rows = first.part("signature").rows
    assert [row["Name"] for row in rows] == [f"feature_{number:05}" for number in range(100)]
    assert "1\u2013100 of 20,001" in first.part("signature").text
    assert first.part("signature").link("Next") == "?tensors=2#signature"
    assert [(row["Kind"], row["Name"]) for row in last.rows] == [("output", "y")]
    assert "Add the other 19980 inputs" in first.text


def test_the_whole_configuration_is_a_file(
    people: People, wide: ModelVersion, client: Client
) -> None:
    client.force_login(people.viewer)

    page = client.get(PAGE).content.decode()
    answer = client.get(f"{PAGE}/config.pbtxt")

    hidden = len(wide.config_pbtxt.splitlines()) - 200
    assert f"{hidden:,} more lines" in page
    assert answer.content.decode() == wide.config_pbtxt
    assert answer["Content-Disposition"] == 'attachment; filename="detector-1-config.pbtxt"'
    client.force_login(people.stranger)
    assert client.get(f"{PAGE}/config.pbtxt").status_code == 404


def test_comparing_and_the_other_pages_are_bounded(
    people: People, wide: ModelVersion, verified: Upload, client: Client
) -> None:
    verified(onnx_models.linear(scale=2))
    client.force_login(people.member)

    for address in (
        "/vision/models/detector/compare?v=1&v=2",
        "/vision/models/detector",
        "/vision/models/detector/golden-requests/new",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert len(answer.content) < 150_000, address


def test_lists_of_the_api_leave_out_what_can_be_megabytes(
    people: People, wide: ModelVersion, client: Client
) -> None:
    client.force_login(people.viewer)

    for address in ("/api/v1/versions", "/api/v1/models/vision/detector/versions"):
        answer = client.get(address)
        assert len(answer.content) < 20_000
        (row,) = answer.json()["results"]
        assert row["id"] == wide.pk
        assert {"signature", "config_pbtxt"}.isdisjoint(row)
    one = client.get(f"/api/v1/versions/{wide.pk}").json()
    assert len(one["signature"]["inputs"]) == COUNT


def test_differences_are_listed_first_when_not_all_are() -> None:
    left = {f"input {n}": "FP32" for n in range(300)}
    facts = comparison.compare(left, left | {"input 250": "FP16"})

    shown, hidden = comparison.truncate(facts, 200)

    assert (shown[0].name, len(shown), hidden) == ("input 250", 200, 100)
    assert comparison.truncate(facts, 300) == (facts, 0)


def test_a_prefilled_request_is_bounded_over_all_inputs() -> None:
    inputs = tuple(Tensor(f"x{number}", "FP32", (30_000,)) for number in range(4))
    signature = Signature(inputs=inputs, outputs=())

    body = example_requests.infer_request(signature)

    assert [len(entry["data"]) for entry in body["inputs"]] == [30_000, 30_000, 0, 0]
    wide = signatures.Signature(tuple(Tensor(f"x{n}", "FP32", (1,)) for n in range(COUNT)), ())
    call = inference_call.call_of(engine="triton", model="m", signature=wide)
    assert inference_call.prefill_body(call) == ""


def test_a_file_with_2_000_inputs_is_verified(verified: Upload) -> None:
    version = verified(hostile_graphs.many_inputs(2000))

    assert version.state == VersionState.READY, version.state_reason
    assert len(version.signature["inputs"]) == 2000
