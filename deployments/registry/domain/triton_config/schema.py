"""Triton's own schema of config.pbtxt, from tritonclient.

The module is loaded from its file: importing tritonclient.grpc also imports grpc, which is 45 MB in
each process and not installed everywhere.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_NAME: Final = "tritonclient_model_config_pb2"


@cache
def _messages() -> ModuleType:
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        raise ImportError("tritonclient is not installed. Run make install.")
    path = Path(package.submodule_search_locations[0]) / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be read. Run make install.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def new_config() -> Any:
    """Return an empty ModelConfig."""
    return _messages().ModelConfig()


def data_type(dtype: str) -> int:
    """Return the value of a dtype without TYPE_."""
    return int(_messages().DataType.Value(f"TYPE_{dtype}"))


def dtype_of(data_type: int) -> str:
    return str(_messages().DataType.Name(data_type)).removeprefix("TYPE_")


def group_kind(name: str) -> int:
    return int(_messages().ModelInstanceGroup.Kind.Value(name))


def control_kind(name: str) -> int:
    return int(_messages().ModelSequenceBatching.Control.Kind.Value(name))


def control_name(kind: int) -> str:
    return str(_messages().ModelSequenceBatching.Control.Kind.Name(kind))


def delays(policy: Any) -> bool:
    """Whether a queue policy runs requests after their timeout."""
    return bool(policy.timeout_action == _messages().ModelQueuePolicy.DELAY)


def set_delay(policy: Any) -> None:
    policy.timeout_action = _messages().ModelQueuePolicy.DELAY
