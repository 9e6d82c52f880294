"""The GPUs of a fleet, by dcgm-exporter."""

from __future__ import annotations

from typing import Final

from portal.monitoring.dashboards.dashboard import Dashboard, Panel, Query, Row, Variable
from portal.monitoring.rules.gpus import ENGINE_ACTIVE, UTILISATION

_USED: Final = "DCGM_FI_DEV_FB_USED"
_WHERE: Final = '{cluster=~"$cluster",Hostname=~"$node"}'
_GPU: Final = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}}"
# The exporter's own labels, and as Prometheus renames them.
_OF_NAMESPACE: Final = (
    '{cluster=~"$cluster",Hostname=~"$node",exported_namespace=~"$namespace",exported_pod!=""}'
)


def _each(metric: str) -> Query:
    return Query(f"{metric}{_WHERE}", _GPU)


def _busy() -> Query:
    return Query(f"{ENGINE_ACTIVE}{_WHERE} or {UTILISATION}{_WHERE} / 100", _GPU)


def _memory() -> Query:
    free = f"DCGM_FI_DEV_FB_FREE{_WHERE}"
    used = f"{_USED}{_WHERE}"
    whole = f"{used} + {free} + DCGM_FI_DEV_FB_RESERVED{_WHERE}"
    return Query(f"{used} / ({whole}) or {used} / ({used} + {free})", _GPU)


def dashboard() -> Dashboard:
    return Dashboard(
        uid="slipway-gpus",
        title="Slipway: GPU fleet",
        variables=(
            Variable("cluster", "Cluster", f"label_values({_USED}, cluster)"),
            Variable("node", "Node", f'label_values({_USED}{{cluster=~"$cluster"}}, Hostname)'),
            Variable(
                "namespace",
                "Namespace",
                f'label_values({_USED}{{cluster=~"$cluster"}}, exported_namespace)',
            ),
        ),
        rows=(_use(), _owners(), _condition()),
    )


def _use() -> Row:
    busy = f"avg({ENGINE_ACTIVE}{_WHERE}) or avg({UTILISATION}{_WHERE}) / 100"
    return Row(
        "Use",
        (
            Panel("GPUs", "short", (Query(f"count({_USED}{_WHERE})", "GPUs and MIG instances"),)),
            Panel("Busy, mean", "percentunit", (Query(busy, "busy"),)),
            Panel(
                "Busy",
                "percentunit",
                (_busy(),),
                "Share of time in which an engine ran; where profiling is off, GPU utilisation.",
            ),
            Panel("Memory", "percentunit", (_memory(),)),
        ),
    )


def _owners() -> Row:
    by = "sum by (exported_namespace, exported_pod)"
    legend = "{{exported_namespace}}/{{exported_pod}}"
    held = f"count by (exported_namespace) ({_USED}{_OF_NAMESPACE})"
    busy = (
        f"avg by (exported_namespace) ({ENGINE_ACTIVE}{_OF_NAMESPACE})"
        f" or avg by (exported_namespace) ({UTILISATION}{_OF_NAMESPACE}) / 100"
    )
    return Row(
        "Owners",
        (
            Panel("GPUs held", "short", (Query(held, "{{exported_namespace}}"),)),
            Panel("Busy by namespace", "percentunit", (Query(busy, "{{exported_namespace}}"),)),
            Panel(
                "Memory by pod",
                "mbytes",
                (Query(f"{by} ({_USED}{_OF_NAMESPACE})", legend),),
            ),
        ),
    )


def _condition() -> Row:
    return Row(
        "Condition",
        (
            Panel("Temperature", "celsius", (_each("DCGM_FI_DEV_GPU_TEMP"),)),
            Panel("Power", "watt", (_each("DCGM_FI_DEV_POWER_USAGE"),)),
            Panel(
                "Last XID",
                "none",
                (_each("DCGM_FI_DEV_XID_ERRORS"),),
                "The code of the last fault that the driver reported; 0 is none.",
            ),
            Panel(
                "Remapped rows",
                "short",
                (
                    Query(f"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{_WHERE}", _GPU),
                    Query(f"DCGM_FI_DEV_ROW_REMAP_FAILURE{_WHERE}", f"failed: {_GPU}"),
                ),
            ),
        ),
    )
