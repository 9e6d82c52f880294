from fleet.models.actions import FleetAction
from fleet.models.budgets import BudgetAlert
from fleet.models.callers import CallerCounter, CallerHour, CallerReading
from fleet.models.clusters import Cluster, ClusterKind, Node, Pod, Workload
from fleet.models.days import (
    LedgerDay,
    LedgerFourHours,
    LedgerMonth,
    LedgerTeamDay,
    LedgerTeamHour,
    OpenHour,
    OpenHourSum,
    SummedDay,
    TeamUsageDay,
    TeamUsageHour,
    WorkloadDay,
)
from fleet.models.devices import DeviceClaim, DeviceSlice
from fleet.models.installation import Installation
from fleet.models.metering import (
    GpuLease,
    InstancePrice,
    LedgerKind,
    LedgerRow,
    PriceOrigin,
    SealedHour,
    UnpricedHour,
)
from fleet.models.office_hours import PoolOfficeHours
from fleet.models.telemetry import (
    EnergyReading,
    MetricSample,
    ScrapeReading,
    WorkloadHour,
    WorkloadMinute,
)

__all__ = [
    "BudgetAlert",
    "CallerCounter",
    "CallerHour",
    "CallerReading",
    "Cluster",
    "ClusterKind",
    "DeviceClaim",
    "DeviceSlice",
    "EnergyReading",
    "FleetAction",
    "GpuLease",
    "Installation",
    "InstancePrice",
    "LedgerDay",
    "LedgerFourHours",
    "LedgerKind",
    "LedgerMonth",
    "LedgerRow",
    "LedgerTeamDay",
    "LedgerTeamHour",
    "MetricSample",
    "Node",
    "OpenHour",
    "OpenHourSum",
    "Pod",
    "PoolOfficeHours",
    "PriceOrigin",
    "ScrapeReading",
    "SealedHour",
    "SummedDay",
    "TeamUsageDay",
    "TeamUsageHour",
    "UnpricedHour",
    "Workload",
    "WorkloadDay",
    "WorkloadHour",
    "WorkloadMinute",
]
