"""POST versions/{id}/triton-config: a config.pbtxt into settings and back."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.models import ModelVersion
from deployments.registry.domain import triton_config
from tests.deployments.registry.triton_strategies import BATCHED
from tests.deployments.world import World


@pytest.fixture
def convert(world: World) -> Any:
    version = world.version1
    ModelVersion.objects.filter(pk=version.pk).update(signature=BATCHED.to_json())
    client = APIClient()
    client.force_authenticate(world.member)

    def post(**body: Any) -> Any:
        return client.post(f"/api/v1/versions/{version.pk}/triton-config", body, format="json")

    return post


def test_a_text_becomes_settings_that_a_request_takes_and_becomes_the_text_again(
    convert: Any, world: World
) -> None:
    text = (
        'name: "detector"\nmax_batch_size: 16\ndynamic_batching { max_queue_delay_microseconds: 5 }'
    )

    answer = convert(text=text)
    again = convert(settings=answer.json()["settings"])

    assert answer.status_code == again.status_code == 200
    settings = answer.json()["settings"]
    assert settings["batching"]["max_queue_delay_us"] == 5
    assert settings["batching"]["max_batch_size"] == 16
    assert answer.json()["text"] == again.json()["text"]
    assert "instance_group { kind: KIND_GPU count: 1 }\n" in again.json()["text"]
    assert [problem["message"] for problem in answer.json()["problems"]] == [
        "instance_group states no kind: Triton would fall back to the CPU without a GPU."
    ]


def test_what_is_wrong_has_its_place_and_its_fix(convert: Any) -> None:
    answer = convert(text="max_batch_size: 8\ndynamic_batchin { }")

    assert answer.status_code == 200
    assert answer.json()["settings"] is None
    assert answer.json()["problems"] == [
        {
            "message": 'There is no "dynamic_batchin" in ModelConfig.',
            "fix": 'Did you mean "dynamic_batching"?',
            "line": 2,
            "column": 1,
            "is_blocking": True,
            "setting": "",
        }
    ]


def test_what_no_setting_states_comes_back_as_the_rest(convert: Any) -> None:
    answer = convert(text="max_batch_size: 8\noptimization { cuda { graphs: true } }").json()

    assert (answer["settings"], answer["rest"]) == (
        None,
        "optimization { cuda { graphs: true } }\n",
    )


def test_the_size_of_the_response_cache_is_kept(convert: Any) -> None:
    text = (
        triton_config.render(model="detector", signature=BATCHED)
        + "response_cache { enable: true }"
    )

    default = convert(text=text).json()["settings"]["triton"]["response_cache_mib"]
    kept = convert(text=text, settings={"triton": {"response_cache_mib": 64}}).json()

    assert (default, kept["settings"]["triton"]["response_cache_mib"]) == (256, 64)


def test_settings_that_do_not_fit_together_are_refused_at_their_path(convert: Any) -> None:
    answer = convert(settings={"triton": {"sequence": {}}})

    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {
            "field": "settings.triton.sequence",
            "detail": "Triton takes one scheduler. Turn batching.is_dynamic off, or sequence batching.",
        }
    ]


def test_settings_that_the_model_cannot_use_are_problems(convert: Any) -> None:
    answer = convert(
        settings={
            "batching": {"is_dynamic": False},
            "triton": {"sequence": {"start_input": "image"}, "decoupled": True},
        }
    ).json()

    assert [(problem["setting"], problem["is_blocking"]) for problem in answer["problems"]] == [
        ("triton.decoupled", True),
        ("triton.sequence.start_input", True),
    ]


def test_a_version_without_a_signature_has_no_config(world: World) -> None:
    client = APIClient()
    client.force_authenticate(world.member)

    answer = client.post(
        f"/api/v1/versions/{world.version1.pk}/triton-config", {"text": ""}, format="json"
    )

    assert answer.status_code == 422
    assert "has no config.pbtxt" in answer.json()["detail"]
