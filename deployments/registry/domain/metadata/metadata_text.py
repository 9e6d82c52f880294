"""Metrics and labels as people write them in a form: one per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deployments.registry.domain.metadata.version_metadata import (
    DIRECTIONS,
    METRICS,
    labels_of,
    metrics_of,
)

_DIRECTION: Final = re.compile(r"\s*\((higher|lower) is better\)$")


def parse_metrics(text: str) -> dict[str, dict[str, str]]:
    """Parse metrics. Numbers stay texts: `version_metadata.clean` reads them and names what is wrong."""
    metrics, directions = {}, {}
    for line in _lines(text):
        direction = _DIRECTION.search(line)
        name, value = _cut(_DIRECTION.sub("", line))
        metrics[name] = value
        if direction:
            directions[name] = direction[1]
    return {METRICS: metrics, DIRECTIONS: directions}


def format_metrics(metadata: Mapping[str, Any]) -> str:
    directions = metadata.get(DIRECTIONS, {})
    return "\n".join(
        f"{name} = {value}" + (f" ({directions[name]} is better)" if name in directions else "")
        for name, value in metrics_of(metadata).items()
    )


def parse_labels(text: str) -> dict[str, str]:
    return dict(_cut(line) for line in _lines(text))


def format_labels(metadata: Mapping[str, Any]) -> str:
    labels = labels_of(metadata).items()
    return "\n".join(f"{key} = {value}" if value else key for key, value in labels)


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def _cut(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name.strip(), value.strip()
