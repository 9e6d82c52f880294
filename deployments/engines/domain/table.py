"""The table of releases: one file a release in `releases/`, written by `make engines` from the engine's own sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from deployments.engines.domain import images
from deployments.engines.domain.images import Release

_FOLDER: Final = Path(__file__).with_name("releases")
SHUTDOWN_TIMEOUT: Final = "--shutdown-timeout"
_TWO_WAY: Final = "on/off"
_NO: Final = "--no-"
# The arguments whose values the engine checks itself, by the part of the table that lists them.
_LISTED: Final = {
    "--quantization": "quantization",
    "--tool-call-parser": "tool_parsers",
    "--reasoning-parser": "reasoning_parsers",
}


@dataclass(frozen=True, slots=True)
class EngineRelease:
    """A release of vLLM. An argument has its choices, "on" or "on/off" for a switch, or None for any value."""

    release: Release
    name: str
    arguments: Mapping[str, Sequence[str] | str | None]
    architectures: frozenset[str]
    quantization: frozenset[str]
    tool_parsers: frozenset[str]
    reasoning_parsers: frozenset[str]
    metrics: frozenset[str]

    def takes(self, argument: str) -> bool:
        """Return whether the server takes an argument, written as --name=value or as a switch."""
        name, has_value, value = argument.partition("=")
        if name.startswith(_NO):
            return self.arguments.get("--" + name.removeprefix(_NO)) == _TWO_WAY
        if name not in self.arguments:
            return False
        if name in _LISTED:
            return value in getattr(self, _LISTED[name])
        choices = self.arguments[name]
        return not has_value or not isinstance(choices, list) or value in choices


@cache
def list_vllm_releases() -> tuple[EngineRelease, ...]:
    """Return the releases of the table, the oldest first."""
    rows = (json.loads(path.read_bytes()) for path in _FOLDER.glob("vllm-*.json"))
    return tuple(sorted(map(_read, rows), key=lambda row: row.release))


def _read(row: Mapping[str, Any]) -> EngineRelease:
    major, minor, _ = row["release"].split(".")
    groups = row["architectures"].values()
    return EngineRelease(
        release=(int(major), int(minor)),
        name=row["release"],
        arguments=row["arguments"],
        architectures=frozenset(name for group in groups for name in group),
        quantization=frozenset(row["quantization"]),
        tool_parsers=frozenset(row["tool_parsers"]),
        reasoning_parsers=frozenset(row["reasoning_parsers"]),
        metrics=frozenset(row["metrics"]),
    )


def find_vllm_release(image: str) -> EngineRelease | None:
    """Return the release of an image. None if the image states none, or one that the table does not have."""
    release = images.read_vllm_release(image)
    return next((row for row in list_vllm_releases() if row.release == release), None)


@cache
def find_first_with(argument: str) -> Release:
    """Return the first release of the table that takes an argument."""
    return next(row.release for row in list_vllm_releases() if row.takes(argument))
