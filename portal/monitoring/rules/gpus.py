"""GPUs, as dcgm-exporter reports them with its default list of counters."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import gpu_memory, idle_gpus
from fleet.observation.domain import gpu_errors
from fleet.telemetry.domain import dcgm_metrics
from portal.monitoring import promql
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_USED: Final = "DCGM_FI_DEV_FB_USED"
_FREE: Final = "DCGM_FI_DEV_FB_FREE"
_RESERVED: Final = "DCGM_FI_DEV_FB_RESERVED"
_XID: Final = dcgm_metrics.XID
_GPU: Final = "GPU {{ $labels.gpu }} of {{ or $labels.Hostname $labels.hostname }}"
# Older exporters do not report what the driver reserves.
MEMORY_SHARE: Final = (
    f"({_USED} / ({_USED} + {_FREE} + {_RESERVED}) or {_USED} / ({_USED} + {_FREE}))"
)
# On MIG there is no utilisation but of engines; where profiling is off there is only the former.
ENGINE_ACTIVE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTILISATION: Final = "DCGM_FI_DEV_GPU_UTIL"


def _memory() -> AlertRule:
    return AlertRule(
        name="SlipwayGpuMemory",
        expr=f"{MEMORY_SHARE} >= {gpu_memory.OPENS_AT_PERCENT / 100}",
        hold="10m",
        severity=Severity.WARNING,
        summary=f"{_GPU} has no memory left",
        description="{{ $value | humanizePercentage }} of its memory is used: a larger request may fail.",
        advice=gpu_memory.KIND.advice,
    )


def _idle() -> AlertRule:
    """Return the rule for a revision whose GPUs are idle, and which held them a day ago too."""
    window = f"{idle_gpus.HOURS}h"
    engines = promql.restrict_to_gpu_owners(f"avg_over_time({ENGINE_ACTIVE}{{WHERE}}[{window}])")
    whole = promql.restrict_to_gpu_owners(f"avg_over_time({UTILISATION}{{WHERE}}[{window}])")
    before = promql.restrict_to_gpu_owners(f"{_USED}{{WHERE}} offset {window}")
    labels = promql.DEPLOYMENT_LABELS
    busy = f"(avg by ({labels}) {engines} or avg by ({labels}) {whole} / 100)"
    held = f"count by ({labels}) {promql.restrict_to_gpu_owners(f'{_USED}{{WHERE}}')}"
    return AlertRule(
        name="SlipwayGpuIdle",
        expr=f"{busy} < {idle_gpus.OPENS_BELOW} and {held} > 0 and count by ({labels}) {before} > 0",
        severity=Severity.INFO,
        summary="{{ $labels.namespace }}/{{ $labels.deployment }} {{ $labels.revision }} holds idle GPUs",
        description="Its GPUs were busy {{ $value | humanizePercentage }} of the last 24 hours.",
        advice=idle_gpus.KIND.advice,
    )


def _xid() -> AlertRule:
    by_programs = " or ".join(f"{_XID} == {code}" for code in gpu_errors.OF_PROGRAMS)
    return AlertRule(
        name="SlipwayGpuXid",
        expr=f"{_XID} > 0 unless ({by_programs})",
        severity=Severity.CRITICAL,
        summary=f"{_GPU} reported XID {{{{ $value }}}}",
        description="The driver reported a fault that is not the program's own.",
        advice="Cordon the node, drain it, and look the code up in NVIDIA's list of XIDs: most need a reset or another GPU.",
    )


def _remapping() -> AlertRule:
    return AlertRule(
        name="SlipwayGpuRowRemapping",
        expr="DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        severity=Severity.CRITICAL,
        summary=f"{_GPU} cannot replace broken memory",
        description="Remapping of rows failed.",
        advice="Cordon and drain the node, and have the GPU replaced.",
    )


def group() -> Group:
    return Group("slipway-gpus", (_memory(), _idle(), _xid(), _remapping()))
