"""A request is compared with the release of vLLM that its image states."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.registry.domain.hugging_face import facts
from portal.core.errors import Invalid
from tests.deployments.external_weights import checked, draft, language_cluster
from tests.deployments.preflight.test_uploaded_weights import uploaded
from tests.deployments.refusals import refused
from tests.deployments.world import World

__all__ = ["language_cluster"]
pytestmark = pytest.mark.usefixtures("language_cluster")
_BITSANDBYTES = {"llm": {"quantization": "bitsandbytes"}}


def _found(world: World, version: Any, **changed: Any) -> list[Check]:
    result = checked(world, version, **changed)
    return [check for check in result.checks if check.name == "Engine release"]


def test_a_release_that_has_everything_adds_no_row(world: World, settings: Any) -> None:
    version = uploaded(world)

    for release in ("0.11.0", "0.18.0", "0.24.0", "0.32.0", "0.33.0"):
        settings.SLIPWAY_VLLM_IMAGE = f"vllm/vllm-openai:v{release}"
        assert _found(world, version) == []


def test_a_setting_that_the_release_lacks_is_refused_with_the_release_that_has_it(
    world: World, settings: Any
) -> None:
    version = uploaded(world)

    assert _found(world, version, **_BITSANDBYTES) == [
        Check(
            "Engine release",
            ok=False,
            detail="vLLM 0.32.0 does not have --quantization=bitsandbytes.",
            fix="vLLM 0.24.0 is the last release that has it.",
        )
    ]
    with refused(world, Invalid):
        requests.request_deploy(actor=world.member, draft=draft(world, version, **_BITSANDBYTES))
    settings.SLIPWAY_VLLM_IMAGE = "vllm/vllm-openai:v0.24.0"
    assert _found(world, version, **_BITSANDBYTES) == []


def test_an_architecture_of_a_later_release_is_refused(world: World, settings: Any) -> None:
    version = uploaded(world)
    version.signature[facts.KEY]["architecture"] = "Qwen3_5ForConditionalGeneration"
    version.save(update_fields=["signature"])

    assert _found(world, version) == []
    settings.SLIPWAY_VLLM_IMAGE = "vllm/vllm-openai:v0.11.0"
    (check,) = _found(world, version)

    assert check.detail.endswith("the architecture Qwen3_5ForConditionalGeneration.")
    assert check.fix == "Use an image of vLLM 0.18.0 or newer."


def test_an_image_of_no_known_release_is_neither_good_nor_refused(
    world: World, settings: Any
) -> None:
    settings.SLIPWAY_VLLM_IMAGE = "registry.example/vllm@sha256:" + "ab" * 32

    (check,) = _found(world, uploaded(world), **_BITSANDBYTES)

    assert (check.ok, check.is_blocking) == (None, False)
    assert check.fix == "Name the image by the tag of a release."
