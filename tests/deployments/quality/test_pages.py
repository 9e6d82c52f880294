"""Golden requests on the pages: saved from an answer or a file, listed, deleted, and what came of
them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string
from django.test import Client

from deployments.models import GoldenRequest, ModelVersion
from deployments.quality.web import lines as pages
from portal.accounts.models import User
from tests.deployments.golden_requests import (
    SIGNATURE,
    begin,
    request_of,
    save,
    served,
    sweep,
    tensor,
)
from tests.deployments.world import World
from tests.page import page

MODEL = "/vision/models/detector"
TRY = "/vision/deployments/detector/try"
ANSWER = {
    "name": "three dogs",
    "request": json.dumps(request_of(1)),
    "expected": json.dumps({"outputs": [tensor("y", 2)]}),
}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_an_answer_of_try_it_is_saved_and_listed_at_the_model(world: World) -> None:
    ModelVersion.objects.update(signature=SIGNATURE)
    client = signed_in(world.member)

    saved = client.post(
        f"{MODEL}/golden-requests", {**ANSWER, "version_id": world.version1.pk}, follow=True
    )

    text = saved.content.decode()
    assert "Golden request three dogs saved as no. 1." in text
    assert "detector:1" in text
    assert "y ± 0.0001 + 0.1%" in text
    assert GoldenRequest.objects.get().version == world.version1


def test_a_refusal_is_shown_with_the_input(world: World) -> None:
    ModelVersion.objects.update(signature=SIGNATURE)
    body = {**ANSWER, "request": json.dumps({"inputs": [tensor("z", 1)]})}

    answer = signed_in(world.member).post(f"{MODEL}/golden-requests", body)

    assert answer.status_code == 422
    assert "The model has no z; it has x." in answer.content.decode()
    assert not GoldenRequest.objects.exists()


def test_a_file_is_uploaded_and_a_broken_one_refused(world: World) -> None:
    client = signed_in(world.member)
    document = {"request": request_of(1), "expected": [tensor("y", 2)]}
    good = SimpleUploadedFile("golden.json", json.dumps(document).encode())

    broken = client.post(
        f"{MODEL}/golden-requests/new",
        {"name": "two", "file": SimpleUploadedFile("golden.json", b"\xff{")},
    )
    saved = client.post(f"{MODEL}/golden-requests/new", {"name": "one", "file": good})

    assert (broken.status_code, saved.status_code) == (422, 302)
    assert [row.name for row in GoldenRequest.objects.all()] == ["one"]


@pytest.mark.parametrize("body", ["", "[]", '{"nothing": 1}', "{", '{"request": "\\ud800"}'])
def test_what_is_no_golden_request_is_refused(world: World, body: str) -> None:
    answer = signed_in(world.member).post(
        f"{MODEL}/golden-requests/new", {"name": "one", "document": body}
    )

    assert answer.status_code == 422
    assert not GoldenRequest.objects.exists()


def test_a_viewer_sees_them_and_may_change_none(world: World) -> None:
    row = save(world)
    client = signed_in(world.viewer)

    text = page_of(client, MODEL)
    assert "Golden requests" in text
    assert "Add one" not in text
    refused = [
        client.get(f"{MODEL}/golden-requests/new"),
        client.post(f"{MODEL}/golden-requests/{row.pk}/delete"),
    ]

    assert [answer.status_code for answer in refused] == [403, 403]
    assert GoldenRequest.objects.get().retired_at is None


def test_a_member_deletes_one(world: World) -> None:
    row = save(world)

    answer = signed_in(world.member).post(f"{MODEL}/golden-requests/{row.pk}/delete", follow=True)

    assert "Golden request one deleted." in answer.content.decode()
    assert GoldenRequest.objects.get().retired_at is not None


def test_try_it_reaches_a_candidate_without_traffic_and_offers_to_save_its_answer(
    world: World,
) -> None:
    save(world)
    deployment, pods = served(world, r2=lambda x: 3 * x)
    del pods.answers[2]
    begin(world, deployment)
    pods.answers[2] = lambda x: 3 * x
    client = signed_in(world.member)
    body = json.dumps(request_of(7))

    text = page_of(client, TRY)
    assert "candidate · detector:2 · r2, bypassing the gateway" in text
    answer = page(client.post(TRY, {"body": body, "target": "candidate"}))

    assert pods.requests == [(2, 7.0)]
    assert 'data": [ 21 ]' in answer.text
    assert answer.hidden("version_id") == str(world.version2.pk)
    viewed = signed_in(world.viewer).post(TRY, {"body": body, "target": "candidate"})
    assert "Save as golden request" not in viewed.content.decode()


def test_without_a_candidate_there_is_no_choice(world: World) -> None:
    served(world)
    client = signed_in(world.member)

    assert "bypassing the gateway" not in page_of(client, TRY)
    refused = client.post(TRY, {"body": json.dumps(request_of(7)), "target": "candidate"})
    assert refused.status_code == 422


def test_the_rollout_shows_which_answer_is_wrong_and_how_stable_differs(world: World) -> None:
    save(world, "one", 1.0, 2.0)
    save(world, "two", 2.0, 4.0)
    deployment, _ = served(world, r2=lambda x: 2 * x if x == 1 else 2 * x + 0.5)
    begin(world, deployment)
    rollout = sweep(world, deployment)

    body: dict[str, Any] = pages.before_traffic_context(rollout)
    text = " ".join(render_to_string("pages/_before_traffic.html", body).split())

    assert body["disagreement"] == "Stable gives a different result for 1 of 2 (50%)"
    line = body["output_lines"][0]
    assert (line.name, line.differing, line.requests) == ("y", 1, 2)
    assert (line.largest_absolute, line.largest_relative_percent) == (0.5, 12.5)
    assert "y: element 1 of 1 is 4.5, expected 4: off by 0.5, allowed 0.0041" in text
    assert "y: up to 0.5 apart" in text
    assert "12.5%" in text


def test_without_golden_requests_the_rollout_shows_nothing(world: World) -> None:
    deployment, _ = served(world, r2=lambda x: 2 * x)

    context = pages.before_traffic_context(begin(world, deployment))

    assert render_to_string("pages/_before_traffic.html", context).strip() == ""
