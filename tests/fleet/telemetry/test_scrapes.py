"""How pods are read, and what becomes of a Prometheus that is down, refuses, lies or answers half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import pytest
import time_machine

from fleet.clusters.domain.prometheus import (
    PrometheusError,
    PrometheusUnreachable,
    QueryRefused,
)
from fleet.clusters.domain.prometheus_series import Series, SeriesResult
from fleet.clusters.selectors import clusters
from fleet.clusters.services import prometheus
from fleet.kube.domain.errors import Unreachable
from fleet.models import Cluster, MetricSample, Pod, ScrapeReading, Workload
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from fleet.telemetry.domain import direct_pods, exposition, scraped_pages
from fleet.telemetry.selectors.current import WorkloadKey
from fleet.telemetry.services import poll, prompt_readings
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod
from tests.fleet.telemetry.test_poll import page

pytestmark = pytest.mark.django_db
A, B = "detector-r1-a", "detector-r1-b"
Results = list[SeriesResult] | PrometheusError


class FakePrometheus:
    """Has the pages of `scraped` (a second and a page for each pod), or answers with `problem`."""

    def __init__(self) -> None:
        self.scraped: dict[str, tuple[float, str]] = {}
        self.problem: PrometheusError | None = None
        self.warnings: tuple[str, ...] = ()
        self.queries: list[int] = []

    def query_series(self, queries: Mapping[Cluster, Sequence[str]]) -> dict[Cluster, Results]:
        self.queries += [len(each) for each in queries.values()]
        return {cluster: self._answer(len(each)) for cluster, each in queries.items()}

    def _answer(self, count: int) -> Results:
        if self.problem is not None:
            return self.problem
        series = [one for pod_name in self.scraped for one in self._series(pod_name)]
        return [SeriesResult(tuple(series), self.warnings), *[SeriesResult(())] * (count - 1)]

    def _series(self, pod_name: str) -> list[Series]:
        second, text = self.scraped[pod_name]
        at = (START + timedelta(seconds=second)).timestamp()
        place = {"namespace": "vision", "pod": pod_name}
        return [
            Series(
                {"__name__": name, **place, **exposition.parse_labels(labels)}, [(at, str(value))]
            )
            for name, labels, value in exposition.samples(text)
        ]


@pytest.fixture
def scraper(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, detector: int) -> FakePrometheus:
    fake = FakePrometheus()
    monkeypatch.setattr(prometheus, "query_series", fake.query_series)
    monkeypatch.setattr(prompt_readings, "_sources", [])
    Cluster.objects.update(prometheus_url="http://prometheus.example")
    add_pods(A, B)
    return fake


def add_pods(*names: str, created: datetime = START - timedelta(hours=1)) -> None:
    pods = [pod(name, created=created, scheduled=created) for name in names]
    record.record(
        cluster_id=Cluster.objects.get().pk,
        changes=ObservedChanges(nodes=[node("node-1", gpus=4)], pods=pods),
        at=START,
    )


def poll_at(second: float) -> int:
    with time_machine.travel(START + timedelta(seconds=second), tick=False):
        return poll.poll()


def requests_of(name: str) -> list[int]:
    samples = MetricSample.objects.filter(pod__name=name).order_by("at")
    return list(samples.values_list("request_success", flat=True))


def shown() -> tuple[str, int, int | None, int, str]:
    [info] = clusters.list_clusters()
    metrics = info.serving_metrics
    return (
        str(metrics.origin),
        metrics.pods,
        metrics.direct_pods,
        metrics.unread_pods,
        metrics.problem,
    )


def test_a_cluster_gets_as_many_queries_for_many_pods_as_for_few(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    add_pods(*(f"detector-r1-{number}" for number in range(300)))
    scraper.scraped = {name: (0, page(4)) for name in Pod.objects.values_list("name", flat=True)}

    assert [poll_at(second) for second in (1, 6, 11)] == [302, 0, 0]

    assert kube.proxied == []
    assert scraper.queries == [len(scraped_pages.FAMILIES)]
    assert shown() == ("prometheus", 302, 0, 0, "")
    assert poll_at(16) == 0
    assert len(scraper.queries) == 2, "its turn comes each 15 s"


def test_a_scrape_is_stored_once_and_the_next_one_too(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    for second, scraped, success in ((1, 0, 4), (16, 0, 4), (31, 30, 9)):
        scraper.scraped = {A: (scraped, page(success)), B: (0, page(7))}
        poll_at(second)

    assert (requests_of(A), requests_of(B)) == ([4, 9], [7])
    times = MetricSample.objects.filter(pod__name=A).order_by("at").values_list("at", flat=True)
    assert list(times) == [START, START + timedelta(seconds=30)]


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda it: setattr(it, "problem", PrometheusUnreachable("it is down")), "it is down"),
        (lambda it: setattr(it, "problem", QueryRefused("too much")), "too much"),
        (
            lambda it: setattr(it, "warnings", ("a store is away",)),
            "Prometheus warns that data may be missing: a store is away",
        ),
        (
            lambda it: setattr(it, "scraped", {A: (120, page(1))}),
            "the clock of Prometheus is 119 s ahead of the portal's",
        ),
        (
            lambda it: setattr(it, "scraped", {A: (-600, page(1))}),
            "its newest samples are 601 s old by the portal's clock",
        ),
    ],
)
def test_without_an_answer_few_pods_are_read_themselves_and_the_cluster_says_why(
    kube: FakeKube,
    scraper: FakePrometheus,
    break_it: Callable[[FakePrometheus], None],
    why: str,
) -> None:
    kube.pages = {A: page(5), B: page(6)}
    scraper.scraped = {A: (0, page(4)), B: (0, page(5))}
    break_it(scraper)

    assert (poll_at(1), poll_at(6), poll_at(11)) == (0, 2, 2)

    assert (requests_of(A), requests_of(B)) == ([5, 5], [6, 6])
    assert shown() == ("pods", 0, 2, 0, why)
    assert len(scraper.queries) == 1
    scraper.problem, scraper.warnings = None, ()
    scraper.scraped = {A: (60, page(8)), B: (60, page(9))}
    assert poll_at(56) == 2, "still read themselves"
    assert poll_at(62) == 2, "once more, which is newer than the scrape"
    assert poll_at(67) == 0
    assert shown() == ("prometheus", 2, 0, 0, "")


def test_without_an_answer_many_pods_are_a_gap(
    kube: FakeKube, scraper: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_pods, "MOST_DIRECT", 1)
    kube.pages = {A: page(5), B: page(6)}
    scraper.problem = PrometheusUnreachable("it is down")

    assert [poll_at(second) for second in (1, 6, 11)] == [0, 0, 0]

    assert (kube.proxied, MetricSample.objects.count()) == ([], 0)
    assert shown() == ("none", 0, 0, 2, "it is down")


def test_what_prometheus_lacks_is_read_up_to_a_bound(
    kube: FakeKube, scraper: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_pods, "MOST_DIRECT", 2)
    add_pods("detector-r1-c", "detector-r1-d")
    kube.pages = {name: page(5) for name in Pod.objects.values_list("name", flat=True)}
    scraper.scraped = {A: (0, page(4))}

    assert [poll_at(second) for second in (1, 6)] == [1, 2]

    assert [name for _, name, _, _ in kube.proxied] == [B, "detector-r1-c"]
    assert shown() == ("prometheus", 1, 2, 1, "")


def test_a_prometheus_without_series_of_pods_is_no_source(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    kube.pages = {A: page(5), B: page(6)}

    assert [poll_at(second) for second in (1, 6)] == [0, 2]

    why = "it has no series of serving pods with the labels namespace and pod"
    assert shown() == ("pods", 0, 2, 0, why)


def test_workloads_that_something_waits_for_are_read_directly(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    kube.pages = {A: page(5), B: page(6)}
    scraper.scraped = {A: (0, page(4)), B: (0, page(5))}
    key = WorkloadKey(Cluster.objects.get().pk, "vision", "detector-r1")
    prompt_readings.register(lambda _clusters: [key])

    assert [poll_at(second) for second in (1, 6)] == [2, 2]

    assert (requests_of(A), scraper.queries) == ([5, 5], [])


def test_nonsense_of_one_pod_is_a_gap_of_that_pod(kube: FakeKube, scraper: FakePrometheus) -> None:
    kube.pages = {A: page(5)}
    for nonsense in ("NaN", "-1", "1e300", "+Inf"):
        MetricSample.objects.all().delete()
        ScrapeReading.objects.all().delete()
        lies = page(7).replace(" 7\n", f" {nonsense}\n")
        scraper.scraped = {A: (0, lies), B: (0, page(6))}

        assert [poll_at(second) for second in (1, 6)] == [1, 0]

        assert (requests_of(A), requests_of(B)) == ([], [6])
    assert kube.proxied == []


def test_a_number_that_no_row_can_hold_leaves_the_other_pods(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    add_pods(A, B)
    kube.pages = {A: page(7).replace(" 7\n", " 1e30\n"), B: page(6)}

    assert poll_at(1) == 1

    assert (requests_of(A), requests_of(B)) == ([], [6])


def test_samples_of_a_pod_of_the_same_name_before_are_not_its_own(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    add_pods("detector-r1-0", created=START + timedelta(seconds=10))
    kube.pages = {"detector-r1-0": page(0)}
    scraper.scraped = {"detector-r1-0": (5, page(900)), A: (10, page(1)), B: (10, page(1))}

    assert [poll_at(second) for second in (12, 17)] == [2, 1]

    assert requests_of("detector-r1-0") == [0]


def test_a_pod_that_states_times_of_its_own_is_read_itself_and_the_others_are_not(
    kube: FakeKube, scraper: FakePrometheus
) -> None:
    add_pods("detector-r1-c")
    kube.pages = {A: page(5)}
    scraper.scraped = {A: (300, page(1)), B: (0, page(2)), "detector-r1-c": (0, page(3))}

    assert [poll_at(second) for second in (1, 6)] == [2, 1]

    assert (requests_of(A), requests_of(B), shown()[:3]) == ([5], [2], ("prometheus", 2, 1))


def test_a_clock_that_was_set_back_delays_no_query(kube: FakeKube, scraper: FakePrometheus) -> None:
    scraper.scraped = {A: (0, page(4)), B: (0, page(5))}
    poll_at(3600)
    poll_at(1)

    assert len(scraper.queries) == 2
    assert (requests_of(A), requests_of(B)) == ([4], [5])


def test_an_unregistered_prometheus_is_not_queried(kube: FakeKube, scraper: FakePrometheus) -> None:
    scraper.scraped = {A: (0, page(4)), B: (0, page(5))}
    poll_at(1)
    Cluster.objects.update(prometheus_url="")
    kube.pages = {A: page(5), B: Unreachable("gone")}

    assert poll_at(20) == 1

    assert len(scraper.queries) == 1
    assert shown() == ("pods", 0, None, 0, "none is registered for the cluster")


def test_two_workers_at_once_query_once(kube: FakeKube, scraper: FakePrometheus) -> None:
    scraper.scraped = {A: (0, page(4)), B: (0, page(5))}
    assert (poll_at(1), poll_at(1)) == (2, 0)
    assert len(scraper.queries) == 1
    assert Workload.objects.count() == 1
