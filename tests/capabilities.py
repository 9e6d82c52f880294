"""Capabilities of clusters in tests."""

from __future__ import annotations

from typing import Any

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import ENGINE_NEEDS


def offering(*engines: str, reason: str = "") -> dict[str, Any]:
    """The column of a cluster that offers these engines only; its other features are not known."""
    features = {name: Feature(is_there=True) for name in ("kubernetes", "kserve")}
    excluded = {engine: reason for engine in ENGINE_NEEDS if engine not in engines}
    return Capabilities(features=features, excluded_engines=excluded).to_json()
