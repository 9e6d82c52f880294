"""A metric over a model's versions."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.models import ModelVersion
from deployments.registry.domain.metadata import version_metadata
from portal.ui.charts import Chart, Point, lines


def metric_over_versions(versions: Sequence[ModelVersion], metric: str) -> Chart | None:
    """Draw a metric over versions, the oldest first. None with fewer than two values."""
    in_order = sorted(versions, key=lambda version: version.number)
    metrics = [(v, version_metadata.metrics_of(v.metadata).get(metric)) for v in in_order]
    measured = [(version, value) for version, value in metrics if value is not None]
    if len(measured) < 2:
        return None
    values = [{"version": f"{v.number}", "value": value} for v, value in measured]
    label = f"{metric}, versions {measured[0][0].number} to {measured[-1][0].number}"
    frame = lines(
        label=label, points=[Point(v.created_at, metric, None) for v, _ in measured], unit=metric
    )
    spec = {key: value for key, value in frame.spec.items() if key != "layer"} | {
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "strokeWidth": 1.8, "color": "var(--series-1)"},
        "encoding": {
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
            "tooltip": [{"field": "version"}, {"field": "value", "title": metric}],
        },
    }
    rows = [(str(v.number), str(value)) for v, value in measured]
    return Chart(label=label, spec=spec, header=("Version", metric), rows=rows)
