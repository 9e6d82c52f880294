"""The table of releases: what each says of itself, and what it lacks."""

from __future__ import annotations

import pytest

from deployments.engines.domain import images, lacks, table
from deployments.engines.domain.lacks import Lack
from deployments.engines.domain.table import EngineRelease
from fleet.telemetry.domain.metric_names import VLLM
from portal import default_images

_BY_NAME = {row.name: row for row in table.list_vllm_releases()}


def _release(name: str) -> EngineRelease:
    return _BY_NAME[name]


def test_releases_are_read_in_their_order() -> None:
    assert list(_BY_NAME) == ["0.11.0", "0.18.0", "0.24.0", "0.32.0", "0.33.0"]
    assert len(_release("0.32.0").architectures) == 391


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.32.0", (0, 32)),
        ("registry.example:5000/mirror/vllm-openai:v0.11.2-cu128", (0, 11)),
        ("vllm/vllm-openai:v0.32.0@sha256:" + "ab" * 32, (0, 32)),
        ("public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0-neuronx-py312", (0, 16)),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai@sha256:" + "ab" * 32, None),
        ("lmsysorg/sglang:v0.5.23", None),
        ("", None),
    ],
)
def test_the_tag_of_an_image_states_its_release(
    image: str, release: tuple[int, int] | None
) -> None:
    assert images.read_vllm_release(image) == release


def test_the_default_image_is_a_release_of_the_table() -> None:
    row = table.find_vllm_release(default_images.VLLM)

    assert row is not None
    assert row.name == "0.32.0"


def test_a_patch_is_read_as_its_release_and_a_release_between_is_not_known() -> None:
    patch = table.find_vllm_release("vllm/vllm-openai:v0.11.2")

    assert patch is _release("0.11.0")
    assert table.find_vllm_release("vllm/vllm-openai:v0.20.0") is None


@pytest.mark.parametrize(
    ("argument", "is_taken"),
    [
        ("--max-model-len=512", True),
        ("--enforce-eager", True),
        ("--no-enable-prefix-caching", True),
        ("--no-max-model-len", False),
        ("--kv-cache-dtype=fp8_e4m3", True),
        ("--kv-cache-dtype=fp4", False),
        ("--quantization=fp8", True),
        ("--quantization=bitsandbytes", False),
        ("--tool-call-parser=hermes", True),
        ("--tool-call-parser=unheard-of", False),
        ("--unheard-of", False),
    ],
)
def test_an_argument_is_taken_with_its_value(argument: str, is_taken: bool) -> None:
    assert _release("0.32.0").takes(argument) == is_taken


@pytest.mark.parametrize(
    ("name", "argument", "fix"),
    [
        ("0.11.0", "--shutdown-timeout=30", "Use an image of vLLM 0.18.0 or newer."),
        (
            "0.32.0",
            "--quantization=bitsandbytes",
            "vLLM 0.24.0 is the last release that has it.",
        ),
    ],
)
def test_a_missing_argument_is_named_with_the_release_that_has_it(
    name: str, argument: str, fix: str
) -> None:
    found = lacks.list_lacks(
        _release(name), ["/mnt/models", argument, "--dtype=auto"], architecture="", quantization=""
    )

    assert found == [Lack(argument, fix)]


def test_a_model_is_compared_with_the_release() -> None:
    """The architecture came after it, the quantisation went before it."""
    found = lacks.list_lacks(
        _release("0.24.0"), [], architecture="Step5ForCausalLM", quantization="gguf"
    )

    assert found == [
        Lack("the architecture Step5ForCausalLM", "Use an image of vLLM 0.33.0 or newer."),
        Lack(
            "the quantisation gguf of the weights", "vLLM 0.18.0 is the last release that has it."
        ),
    ]


def test_what_no_release_has_is_left_to_a_plugin() -> None:
    assert (
        lacks.list_lacks(
            _release("0.32.0"), ["--of-a-plugin"], architecture="Own", quantization="own"
        )
        == []
    )


@pytest.mark.parametrize("name", _BY_NAME)
def test_telemetry_reads_metrics_that_each_release_has(name: str) -> None:
    """A release has one of the names that a metric was given over time."""
    metrics = _release(name).metrics
    groups = [VLLM.cache_usage, VLLM.first_token, VLLM.later_token]
    single = [
        *(VLLM.finished, VLLM.running, VLLM.waiting, VLLM.prompt_tokens, VLLM.generation_tokens),
        *(VLLM.preemptions, VLLM.whole_request, VLLM.queue),
        *(metric.removesuffix("_sum") for metric in VLLM.compute),
    ]

    assert [metric for metric in single if metric not in metrics] == []
    assert [group for group in groups if not metrics.intersection(group)] == []
