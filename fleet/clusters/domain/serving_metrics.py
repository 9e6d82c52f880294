"""The origin of the metrics of a cluster's model servers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Origin(StrEnum):
    PROMETHEUS = "prometheus"
    PODS = "pods"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ServingMetrics:
    """The source of a cluster's serving metrics. `problem` is why they do not come through Prometheus, which last
    answered at `read_at`. `direct_pods` are those that it lacks; None: all pods of the cluster.
    """

    pods: int = 0
    direct_pods: int | None = None
    unread_pods: int = 0
    read_at: datetime | None = None
    problem: str = ""

    @property
    def origin(self) -> Origin:
        if not self.problem:
            return Origin.PROMETHEUS
        return Origin.NONE if self.unread_pods and not self.direct_pods else Origin.PODS
