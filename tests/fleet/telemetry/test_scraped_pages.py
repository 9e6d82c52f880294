"""Series of Prometheus back to the pages of pods: which series, of which scrape, with which labels."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.clusters.domain import prometheus_series
from fleet.clusters.domain.prometheus import NotPrometheus, QueryRefused
from fleet.clusters.domain.prometheus_series import Series
from fleet.telemetry.domain import exposition, metrics_page, scraped_pages
from fleet.telemetry.domain.scraped_pages import ScrapedPage

POD = ("vision", "a")
OF_POD = {"namespace": "vision", "pod": "a"}


def series(name: str, *values: tuple[float, str], **labels: str) -> Series:
    return Series({"__name__": name, **OF_POD, **labels}, list(values))


def pages(*found: Series) -> tuple[ScrapedPage, ...]:
    return scraped_pages.by_pod(found, {POD}).get(POD, ())


def test_a_page_is_one_scrape_without_the_labels_of_the_scrape() -> None:
    page = pages(
        series("requests", (10, "1"), (25, "2"), model="m", job="j", instance="i", service="s"),
        series("failures", (10, "NaN"), (25, "NaN"), model="m", job="j", instance="i"),
    )
    assert page == (ScrapedPage(25, 'requests{model="m"} 2\nfailures{model="m"} NaN\n'),)


def test_half_of_a_scrape_waits_for_the_other_half() -> None:
    half = pages(series("a", (10, "1"), (25, "2")), series("b", (10, "7")))
    assert half == (ScrapedPage(10, "a{} 1\nb{} 7\n"),)


def test_what_a_server_does_not_export_any_more_is_gone_with_the_second_scrape() -> None:
    gone = pages(series("a", (25, "2"), (40, "3")), series("unloaded", (10, "7")))
    assert gone == (ScrapedPage(40, "a{} 3\n"),)


def test_a_label_that_the_scrape_took_gets_its_name_back() -> None:
    [page] = pages(
        series("r", (1, "1"), endpoint="http1", exported_endpoint="/v1/x", exported_pod="z")
    )
    assert page.text == 'r{endpoint="/v1/x",pod="z"} 1\n'


def test_a_name_that_a_server_gives_itself_is_not_believed() -> None:
    stranger = {"namespace": "vision", "pod": "stranger", "exported_pod": "a"}
    assert pages(Series({"__name__": "r", **stranger}, [(1, "1")])) == ()
    elsewhere = {"namespace": "other", "pod": "a", "exported_namespace": "vision"}
    assert pages(Series({"__name__": "r", **elsewhere}, [(1, "1")])) == ()


def test_two_jobs_that_scrape_a_pod_count_once() -> None:
    twice = pages(
        series("r", (10, "4"), job="monitor"),
        series("r", (12, "5"), job="annotations"),
        series("r", (11, "4"), job="annotations", prometheus_replica="1"),
    )
    assert [(page.at, page.text) for page in twice] == [
        (12, "r{} 5\n"),
        (11, "r{} 4\n"),
        (10, "r{} 4\n"),
    ]


def test_a_value_of_a_label_stays_what_it_is() -> None:
    hostile = 'a"} 9\nr{model="other\\'
    [page] = pages(series("r", (1, "1"), model=hostile))
    [(name, labels, value)] = exposition.samples(page.text)
    assert (name, dict(exposition.parse_labels(labels)), value) == ("r", {"model": hostile}, 1.0)


def test_a_query_names_the_namespaces_as_they_are() -> None:
    queries = scraped_pages.queries({"b.*", "a"})
    assert len(queries) == len(scraped_pages.FAMILIES) == 4
    assert all('namespace=~"a|b\\\\.\\\\*",pod!=""' in query for query in queries)


def answer(result: Any, **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": result}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def test_the_last_two_samples_are_kept() -> None:
    one = {"metric": {"__name__": "r"}, "values": [[1, "1"], [2, "2"], [3.5, "NaN"]]}
    native = {"metric": {"__name__": "h"}, "histograms": []}
    read = prometheus_series.parse(200, answer([one, native], warnings=["partial"]))
    assert read.series == (Series({"__name__": "r"}, [(2.0, "2"), (3.5, "NaN")]),)
    assert read.warnings == ("partial",)


@pytest.mark.parametrize(
    "item",
    [
        {"metric": {"__name__": "r"}, "values": [[1e300, "1"]]},
        {"metric": {"__name__": "r"}, "values": [["NaN", "1"]]},
        {"metric": {"__name__": "r"}, "values": [[1]]},
        {"metric": {"__name__": "r", "model": 3}, "values": [[1, "1"]]},
        {"metric": {}, "values": [[1, "1"]]},
        {"metric": [], "values": [[1, "1"]]},
        {"values": [[1, "1"]]},
        7,
    ],
)
def test_what_is_no_series_is_refused(item: Any) -> None:
    with pytest.raises(NotPrometheus):
        prometheus_series.parse(200, answer([item]))


def test_half_an_answer_and_too_much_of_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"metric": {"__name__": "r"}, "values": [[1, "1"]]}
    with pytest.raises(NotPrometheus):
        prometheus_series.parse(200, answer([one])[:-9])
    with pytest.raises(NotPrometheus):
        prometheus_series.parse(200, b'{"status":"success"}')
    monkeypatch.setattr(prometheus_series, "MAX_SERIES", 1)
    with pytest.raises(QueryRefused, match="the response has 2 series, more than 1"):
        prometheus_series.parse(200, answer([one, one]))


def test_twenty_thousand_series_are_a_page_of_each_pod() -> None:
    names = sorted(scraped_pages.FAMILIES["Triton"])
    pods = {("vision", f"detector-r1-{number}") for number in range(1000)}
    result = [
        {
            "metric": {"__name__": name, "namespace": "vision", "pod": pod, "model": "m"},
            "values": [[1000 + 15 * scrape, "7"] for scrape in range(8)],
        }
        for _, pod in pods
        for name in names[:20]
    ]
    body = answer(result)

    found = scraped_pages.by_pod(prometheus_series.parse(200, body).series, pods)
    readings = [
        metrics_page.read(page.text, models=["m"], at=datetime.now(UTC))
        for [page] in found.values()
    ]

    assert len(readings) == len(pods)
