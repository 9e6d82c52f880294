"""Metadata as the page of a version shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployments.models import ModelVersion
from deployments.registry.domain.metadata import version_metadata
from portal.ui import markdown


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """A metric as it is shown. `better` is "higher", "lower", or empty when that is not known."""

    name: str
    value: int | float
    better: str


def context_of(version: ModelVersion) -> dict[str, Any]:
    stored = version.metadata
    metrics = version_metadata.metrics_of(stored)
    labels = version_metadata.labels_of(stored)
    other = {version_metadata.METRICS, version_metadata.DIRECTIONS, version_metadata.LABELS}
    flat = version_metadata.flatten({k: v for k, v in stored.items() if k not in other})
    return {
        "metrics": [
            ShownMetric(name, value, _better(stored, name)) for name, value in metrics.items()
        ],
        "facts": list(flat.items()),
        "labels": [version_metadata.format_label(key, value) for key, value in labels.items()],
        "readme": markdown.render(version.readme) if version.readme else "",
    }


def _better(metadata: dict[str, Any], name: str) -> str:
    is_higher = version_metadata.is_higher_better(metadata, name)
    return (
        ""
        if is_higher is None
        else version_metadata.HIGHER
        if is_higher
        else version_metadata.LOWER
    )
