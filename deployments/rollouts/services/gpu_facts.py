"""Facts for guards that request counters do not contain: GPU memory, prices, and what a server counts."""

from __future__ import annotations

from deployments.guards.domain.counters import NO_FACTS, SideFacts
from deployments.guards.domain.limits import GuardLimit
from deployments.models import Revision, Rollout
from deployments.spec.domain.engines import ABORT_COUNTING_ENGINES
from fleet.telemetry.selectors import current, measured
from fleet.telemetry.selectors.current import WorkloadKey


def facts_of(rollout: Rollout, revision: Revision, limits: tuple[GuardLimit, ...]) -> SideFacts:
    """Read the facts that the limits need, and no others: each costs a query at every reading."""
    needed = {limit.kind.fact for limit in limits if limit.kind.fact}
    if not needed:
        return NO_FACTS
    deployment = rollout.deployment
    key = WorkloadKey(deployment.cluster_id, deployment.namespace, revision.workload_name)
    return SideFacts(
        gpu_memory_gib=_memory_gib(key, revision) if "gpu_memory_gib" in needed else None,
        usd_per_gpu_hour=_price(key) if "usd_per_gpu_hour" in needed else None,
        aborts_counted=_aborts_counted(revision) if "aborts_counted" in needed else None,
    )


def _memory_gib(key: WorkloadKey, revision: Revision) -> float | None:
    peak = measured.memory_peaks([key]).get(key)
    # One before that is of a retired deployment with the same name.
    return peak.mib / 1024 if peak and peak.since >= revision.created_at else None


def _aborts_counted(revision: Revision) -> float | None:
    return 1.0 if revision.spec.get("engine") in ABORT_COUNTING_ENGINES else None


def _price(key: WorkloadKey) -> float | None:
    """Return the price of one GPU for an hour: a figure for comparison, not a charged amount."""
    allocated = current.count_workload_gpus([key]).get(key)
    if allocated is None or allocated.usd_per_hour_amount is None or not allocated.gpus:
        return None
    return float(allocated.usd_per_hour_amount / allocated.gpus)
