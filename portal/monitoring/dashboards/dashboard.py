"""A dashboard of Grafana: variables and rows of panels, two beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

# Of Grafana 10; newer ones migrate it when they load it.
_SCHEMA: Final = 39
_WIDTH, _HEIGHT, _ROW_HEIGHT = 12, 8, 1
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a Grafana dashboard. `unit` is one of Grafana's: percentunit, reqps, s, short."""

    title: str
    unit: str
    queries: Sequence[Query]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """Values of a label of a metric. `regex` takes its first group out of each; without `all_value` all are listed."""

    name: str
    label: str
    query: str
    all_value: str = ".*"
    regex: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "query",
            "name": self.name,
            "label": self.label,
            "datasource": _SOURCE,
            "query": {"query": self.query, "refId": self.name},
            "definition": self.query,
            "regex": self.regex,
            "multi": True,
            "includeAll": True,
            "allValue": self.all_value,
            "current": {"text": ["All"], "value": ["$__all"]},
            "refresh": 2,
            "sort": 1,
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    uid: str
    title: str
    variables: Sequence[Variable]
    rows: Sequence[Row]

    def to_json(self) -> dict[str, Any]:
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["slipway"],
            "schemaVersion": _SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "utc",
            "templating": {
                "list": [_datasource(), *(variable.to_json() for variable in self.variables)]
            },
            "panels": self._panels(),
        }

    def _panels(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        y = 0
        for row in self.rows:
            place = {"x": 0, "y": y, "w": 2 * _WIDTH, "h": _ROW_HEIGHT}
            made.append({"id": len(made) + 1, "type": "row", "title": row.title, "gridPos": place})
            y += _ROW_HEIGHT
            for number, panel in enumerate(row.panels):
                column = number % 2
                place = {"x": column * _WIDTH, "y": y, "w": _WIDTH, "h": _HEIGHT}
                made.append(_panel(panel, len(made) + 1, place))
                y += _HEIGHT if column == 1 or number == len(row.panels) - 1 else 0
        return made


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    limits: dict[str, Any] = {"min": 0}
    if panel.unit == "percentunit":
        limits["max"] = 1
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, **limits}, "overrides": []},
        "options": {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + place_in_list),
                "datasource": _SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
                "range": True,
            }
            for place_in_list, query in enumerate(panel.queries)
        ],
    }


def _datasource() -> dict[str, Any]:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
    }
