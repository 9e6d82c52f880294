"""All kinds of alerts. A further kind is a module in kinds/, its line here and its facts in alerts/selectors/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.alerts.domain.kinds import (
    answers,
    budget,
    cluster_unreachable,
    cost_anomaly,
    gpu_memory,
    idle_gpus,
    node_notices,
    queue_depth,
    slo_burn,
)
from deployments.alerts.domain.signals import AlertKind

KINDS: Final[Mapping[str, AlertKind]] = {
    kind.code: kind
    for kind in (
        slo_burn.KIND,
        queue_depth.KIND,
        gpu_memory.KIND,
        idle_gpus.KIND,
        node_notices.RECLAIM,
        node_notices.FAULT,
        cluster_unreachable.KIND,
        budget.KIND,
        cost_anomaly.KIND,
        answers.KIND,
    )
}
