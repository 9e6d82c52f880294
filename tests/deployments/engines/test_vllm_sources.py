"""A release is read from its sources as its own program would make its arguments of them."""

from __future__ import annotations

import pytest

from tests.engine_releases import release_files
from tests.engine_releases.vllm_sources import NotReadable, VllmSources, is_read

_FILES = {
    "vllm/engine/arg_utils.py": """
def add_cli_args(parser):
    cache_kwargs = get_kwargs(CacheConfig)
    group = parser.add_argument_group(title="CacheConfig")
    group.add_argument("--kv-cache-dtype", **cache_kwargs["cache_dtype"])
    group.add_argument("--block-size", "-b", **cache_kwargs["block_size"])
    group.add_argument("--backend", **cache_kwargs["backend"])
    group.add_argument(
        "--enable-prefix-caching", **{**cache_kwargs["prefix_caching"], "default": None}
    )
    parser.add_argument("--log-requests", action=argparse.BooleanOptionalAction)
""",
    "vllm/config/cache.py": """
Eagle = Literal["eagle", "eagle3"]
Dtype = Literal["auto", "fp8", Eagle]
class CacheConfig:
    cache_dtype: Dtype = "auto"
    block_size: Optional[int] = None
    backend: Dtype | str = "auto"
    prefix_caching: bool | None = None
""",
    "vllm/entrypoints/openai/cli_args.py": """
class FrontendArgs:
    enable_auto_tool_choice: bool = False
    chat_template: str | None = None
def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--headless", action="store_true")
""",
    "vllm/model_executor/models/registry.py": """
_TEXT_GENERATION_MODELS = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM")}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS}
_PREVIOUSLY_SUPPORTED_MODELS = {"OldForCausalLM": "0.10.2"}
""",
    "vllm/model_executor/layers/quantization/__init__.py": """
QuantizationMethods = Literal["gptq", "awq"]
""",
    "vllm/tool_parsers/hermes_tool_parser.py": """
@ToolParserManager.register_module(["hermes", "hermes2"])
class Hermes: ...
""",
    "vllm/reasoning/__init__.py": """
_REASONING_PARSERS_TO_REGISTER = {"qwen3": ("qwen3_reasoning_parser", "Qwen3")}
""",
    "vllm/v1/metrics/loggers.py": """
gauge = self._gauge_cls(name="vllm:num_requests_running", documentation="vllm: no name")
""",
}


def test_all_parts_are_read() -> None:
    assert all(is_read(path) for path in _FILES)
    assert VllmSources(_FILES).describe() == {
        "arguments": {
            "--backend": None,
            "--block-size": None,
            "--chat-template": None,
            "--enable-auto-tool-choice": "on/off",
            "--enable-prefix-caching": "on/off",
            "--headless": "on",
            "--kv-cache-dtype": ["auto", "eagle", "eagle3", "fp8"],
            "--log-requests": "on/off",
        },
        "architectures": {"text_generation": ["LlamaForCausalLM"]},
        "removed_architectures": {"OldForCausalLM": "0.10.2"},
        "quantization": ["awq", "gptq"],
        "tool_parsers": ["hermes", "hermes2"],
        "reasoning_parsers": ["qwen3"],
        "metrics": ["vllm:num_requests_running"],
    }


def test_sources_that_are_written_in_another_way_are_not_taken_for_a_release_without_parts() -> (
    None
):
    with pytest.raises(NotReadable, match="nothing was found of metrics"):
        VllmSources({**_FILES, "vllm/v1/metrics/loggers.py": ""}).describe()


def test_changes_between_two_releases_are_named() -> None:
    before = VllmSources(_FILES).describe()
    newer = _FILES["vllm/config/cache.py"].replace('"fp8"', '"nvfp4"')
    after = VllmSources({**_FILES, "vllm/config/cache.py": newer}).describe()

    assert list(release_files.describe_changes(before, after)) == [
        "arguments: 1 new, 1 gone",
        "  + --kv-cache-dtype=nvfp4",
        "  - --kv-cache-dtype=fp8",
    ]
