from fleet.models.clusters import Cluster, ClusterKind, Node, Pod, Workload
from fleet.models.metering import (
    GPU_PPM,
    GpuLease,
    InstancePrice,
    LedgerKind,
    LedgerRow,
    SealedHour,
    UnpricedHour,
)
from fleet.models.telemetry import MetricSample, WorkloadHour, WorkloadMinute

__all__ = [
    "GPU_PPM",
    "Cluster",
    "ClusterKind",
    "GpuLease",
    "InstancePrice",
    "LedgerKind",
    "LedgerRow",
    "MetricSample",
    "Node",
    "Pod",
    "SealedHour",
    "UnpricedHour",
    "Workload",
    "WorkloadHour",
    "WorkloadMinute",
]
