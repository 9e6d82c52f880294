"""The config of MLflow (-C name=value) as settings and as a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slipway_client.settings import merge_settings, value

_OWN: Final = frozenset({"model", "cluster", "environment", "comment", "wait", "timeout"})


def read(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read a configuration: `-C memory=8Gi` arrives as text; a config of Python as it is."""
    return {
        name: value(item) if isinstance(item, str) else item
        for name, item in (config or {}).items()
    }


def spec_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for name, item in settings.items():
        if name in _OWN:
            continue
        *groups, last = name.split(".")
        nested: dict[str, Any] = {last: item}
        for group in reversed(groups):
            nested = {group: nested}
        spec = merge_settings(spec, nested)
    return {"engine": "kserve-triton", **spec} if spec else {}
