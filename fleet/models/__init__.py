from fleet.models.budgets import BudgetAlert
from fleet.models.clusters import Cluster, ClusterKind, Node, Pod, Workload
from fleet.models.metering import (
    GPU_PPM,
    GpuLease,
    InstancePrice,
    LedgerKind,
    LedgerRow,
    PriceOrigin,
    SealedHour,
    UnpricedHour,
)
from fleet.models.telemetry import MetricSample, WorkloadHour, WorkloadMinute

__all__ = [
    "GPU_PPM",
    "BudgetAlert",
    "Cluster",
    "ClusterKind",
    "GpuLease",
    "InstancePrice",
    "LedgerKind",
    "LedgerRow",
    "MetricSample",
    "Node",
    "Pod",
    "PriceOrigin",
    "SealedHour",
    "UnpricedHour",
    "Workload",
    "WorkloadHour",
    "WorkloadMinute",
]
