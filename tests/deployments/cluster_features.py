"""What the cluster of a test has installed."""

from __future__ import annotations

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster


def can(*names: str) -> None:
    features = {name: Feature(name in names) for name in ("keda", "prometheus", "kserve-knative")}
    features |= {name: Feature(True) for name in ("kubernetes", "kserve")}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())
