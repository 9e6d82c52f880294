"""A metric over a model's versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.environments.domain import environment_rules
from deployments.models import Deployment, ModelVersion
from deployments.registry.domain.metadata import version_metadata
from portal.ui.charts import Chart, LegendEntry, Point, lines

_SERVES: Final = "var(--ok)"
_RESTS: Final = "var(--series-1)"


def metric_over_versions(
    versions: Sequence[ModelVersion],
    metric: str,
    serving: Mapping[int, Sequence[Deployment]] | None = None,
) -> Chart | None:
    """Draw a metric over versions, the oldest first, and mark those that `serving` has deployments of, by version id.
    None with fewer than two values.
    """
    in_order = sorted(versions, key=lambda version: version.number)
    metrics = [(v, version_metadata.metrics_of(v.metadata).get(metric)) for v in in_order]
    measured = [(version, value) for version, value in metrics if value is not None]
    if len(measured) < 2:
        return None
    served = serving or {}
    values = [
        {
            "version": f"{v.number}",
            "value": value,
            "serves": _name_deployments(served.get(v.pk, ())),
            "mark": _name_environments(served.get(v.pk, ())),
        }
        for v, value in measured
    ]
    label = f"{metric}, versions {measured[0][0].number} to {measured[-1][0].number}"
    frame = lines(
        label=label, points=[Point(v.created_at, metric, None) for v, _ in measured], unit=metric
    )
    spec = {key: value for key, value in frame.spec.items() if key != "layer"} | {
        "data": {"values": values},
        "encoding": _axes(metric),
        "layer": _layers(),
    }
    rows = [
        (str(v.number), str(value), _name_deployments(served.get(v.pk, ())))
        for v, value in measured
    ]
    return Chart(
        label=label,
        spec=spec,
        header=("Version", metric, "Serves in"),
        rows=rows,
        legend=(LegendEntry("serves", _SERVES), LegendEntry("does not serve", _RESTS)),
    )


def _axes(metric: str) -> dict[str, Any]:
    return {
        "x": {
            "field": "version",
            "type": "ordinal",
            "sort": None,
            "axis": {"title": "version", "labelAngle": 0, "labelOverlap": True},
        },
        "y": {
            "field": "value",
            "type": "quantitative",
            "scale": {"zero": False},
            "axis": {"title": None, "tickCount": 4},
        },
        "tooltip": [
            {"field": "version"},
            {"field": "value", "title": metric},
            {"field": "serves", "title": "serves in"},
        ],
    }


def _layers() -> list[dict[str, Any]]:
    """Return the line, its points, and on those that serve a diamond with the environments above it."""
    serves = [{"filter": "datum.mark != ''"}]
    return [
        {"mark": {"type": "line", "strokeWidth": 1.8, "color": _RESTS}},
        {"mark": {"type": "point", "filled": True, "size": 36, "opacity": 1, "color": _RESTS}},
        {
            "transform": serves,
            "mark": {
                "type": "point",
                "shape": "diamond",
                "filled": True,
                "size": 150,
                "opacity": 1,
                "color": _SERVES,
            },
        },
        {
            "transform": serves,
            "mark": {"type": "text", "dy": -14, "color": "var(--text-2)"},
            "encoding": {"text": {"field": "mark"}},
        },
    ]


def _name_deployments(deployments: Sequence[Deployment]) -> str:
    return ", ".join(sorted(f"{row.name} ({row.environment})" for row in deployments))


def _name_environments(deployments: Sequence[Deployment]) -> str:
    present = {row.environment for row in deployments}
    return ", ".join(name for name in environment_rules.ORDER if name in present)
