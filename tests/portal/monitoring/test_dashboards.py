"""Dashboards: a real Prometheus reads every query, and every metric is one that an exporter has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from portal.monitoring.dashboards import catalogue
from portal.monitoring.rules import catalogue as rules
from tests import plain_http
from tests.fixtures.prometheus import RealPrometheus
from tests.portal.monitoring import rule_cases
from tests.portal.monitoring.metric_names import metrics_in, published

_POD = rule_cases.POD
_VALUES = {
    "${deployment:regex}": "(detector|ranker)",
    "$__rate_interval": "1m",
    "$cluster": ".*",
    "$namespace": "vision|search",
    "$node": ".*",
    "$view": ".*",
}


def _dashboards() -> dict[str, dict[str, Any]]:
    return {name: made().to_json() for name, made in catalogue.DASHBOARDS.items()}


def _queries(dashboard: dict[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        yield from (each["expr"] for each in panel.get("targets", ()))


def _filled(query: str) -> str:
    """With the values that Grafana would put in."""
    for variable, value in _VALUES.items():
        query = query.replace(variable, value)
    assert "$" not in query.replace('"$1"', "").replace('"$2"', ""), query
    return query


def _selectors(dashboard: dict[str, Any]) -> Iterator[str]:
    for variable in dashboard["templating"]["list"][1:]:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
        assert found is not None, variable["definition"]
        yield found[1]


@pytest.mark.parametrize("name", sorted(catalogue.DASHBOARDS))
def test_a_real_prometheus_reads_every_query(name: str, prometheus: RealPrometheus) -> None:
    dashboard = _dashboards()[name]
    queries = [*_queries(dashboard), *_selectors(dashboard)]

    for query in queries:
        answer = plain_http.client.post(
            f"{prometheus.url}/api/v1/query", data={"query": _filled(query)}
        )
        assert answer.json()["status"] == "success", f"{query}\n{answer.text}"
    assert len(queries) > 13


def test_the_prometheus_refuses_what_it_cannot_read(prometheus: RealPrometheus) -> None:
    answer = plain_http.client.post(
        f"{prometheus.url}/api/v1/query", data={"query": "sum by (le (up)"}
    )

    assert answer.json()["status"] == "error"


@pytest.mark.parametrize("name", sorted(catalogue.DASHBOARDS))
def test_every_metric_of_a_dashboard_is_published(name: str) -> None:
    queries = _queries(_dashboards()[name])
    used = {metric for query in queries for metric in metrics_in(_filled(query))}

    assert used <= published()
    assert len(used) > 8


def test_every_metric_of_a_rule_is_published() -> None:
    groups = [*rules.groups([rule_cases.target()]), *rules.portal_groups()]
    exprs = [made.expr for group in groups for made in group.rules]
    used = {metric for expr in exprs for metric in metrics_in(expr)}

    assert used <= published()
    assert len(used) > 15


def test_names_are_found_in_queries() -> None:
    query = 'sum by (le, pod) (rate(a:b_total{x="c_d"}[5m])) / 1e6 > 0 or max(e) offset 24h'

    assert metrics_in(query) == {"a:b_total", "e"}


def test_values_of_a_deployment(prometheus: RealPrometheus) -> None:
    """One series for a revision with two pods; another deployment and other pods are not in it."""
    metric = "nv_inference_pending_request_count"
    (query,) = [q for q in _queries(_dashboards()["serving"]) if metric in q]
    prometheus.show(
        {
            f'{metric}{{namespace="vision",pod="{_POD}"}}': 3,
            f'{metric}{{namespace="vision",pod="detector-r12-predictor-7d9f6c5b8-abcde"}}': 4,
            f'{metric}{{namespace="vision",pod="detector-2-r12-predictor-7d9f6c5b8-abcde"}}': 50,
            f'{metric}{{namespace="vision",pod="triton-0"}}': 60,
        }
    )

    answer = plain_http.client.post(
        f"{prometheus.url}/api/v1/query", data={"query": _filled(query)}
    )

    series = answer.json()["data"]["result"]
    assert [(each["metric"], each["value"][1]) for each in series] == [
        ({"namespace": "vision", "deployment": "detector", "revision": "r12"}, "7")
    ]


@pytest.mark.parametrize("name", sorted(catalogue.DASHBOARDS))
def test_panels_do_not_lie_over_each_other(name: str) -> None:
    dashboard = _dashboards()[name]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_variables() -> None:
    named = {
        name: [variable["name"] for variable in made["templating"]["list"]]
        for name, made in _dashboards().items()
    }

    assert named == {
        "gpus": ["datasource", "cluster", "node", "namespace"],
        "portal": ["datasource", "view"],
        "serving": ["datasource", "cluster", "namespace", "deployment"],
    }
