"""The stand-in is started by the commands that start vLLM, and refuses those that vLLM refuses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from slipway_localcluster.controllers import language_container
from slipway_localcluster.controllers.triton import BadArguments

_NEW, _OLD = "vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:v0.11.0"


def _launched(image: str, command: list[str], args: list[str]) -> Sequence[str]:
    container = {"image": image, "command": command, "args": args}
    launch = language_container.plan_launch(container, lambda count: [4321] * count)
    assert launch.ports == {8080: 4321}
    return launch.command[3:]


def test_a_model_of_the_command_is_the_first_argument() -> None:
    args = ["--port=8080", "--served-model-name=chat"]

    assert _launched(_NEW, ["vllm", "serve", "/mnt/models"], args) == (
        "--server=vllm",
        f"--image={_NEW}",
        "--port=4321",
        "/mnt/models",
        "--served-model-name=chat",
    )


def test_a_model_after_an_option_is_refused_as_vllm_refuses_it() -> None:
    args = ["--port=8080", "/mnt/models", "--served-model-name=chat"]

    assert "/mnt/models" in _launched(_OLD, ["vllm", "serve"], args)
    with pytest.raises(BadArguments, match="should be provided as the first positional argument"):
        _launched(_NEW, ["vllm", "serve"], args)
