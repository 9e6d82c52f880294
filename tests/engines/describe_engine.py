"""Print what the installed vLLM says of itself, as JSON: run by its own Python."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import Any


def main() -> None:
    parser = _load("vllm.utils.argparse_utils").FlexibleArgumentParser()
    _load("vllm.entrypoints.launchers.cli_args").make_arg_parser(parser)
    registry = _load("vllm.model_executor.models.registry").ModelRegistry
    tools = _load("vllm.tool_parsers").ToolParserManager
    reasoning = _load("vllm.reasoning").ReasoningParserManager
    described = {
        "arguments": {name: value for name, value in map(_describe, _actions(parser)) if name},
        "architectures": sorted(registry.get_supported_archs()),
        "quantization": sorted(
            _load("vllm.model_executor.layers.quantization").QUANTIZATION_METHODS
        ),
        "tool_parsers": sorted(tools.list_registered()),
        "reasoning_parsers": sorted(reasoning.list_registered()),
    }
    # Beside what the engine logs.
    sys.stdout.write(f"\n{json.dumps(described)}\n")


def _load(name: str) -> Any:
    return importlib.import_module(name)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return list(parser._actions)


def _describe(action: argparse.Action) -> tuple[str, list[str] | str | None]:
    """Return the name of an argument, and its choices or that it is a switch."""
    names = [name for name in action.option_strings if name.startswith("--")]
    if isinstance(action, argparse.BooleanOptionalAction):
        return names[0], "on/off"
    if not names:
        return "", None
    if action.choices:
        return names[0], sorted({str(choice) for choice in action.choices} - {"None"})
    return names[0], "on" if action.nargs == 0 else None


if __name__ == "__main__":
    main()
