"""Requests of callers by hour: from counters that restart, vanish, appear and are read twice or late."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fleet.kube.domain.errors import NotAllowed, Unreachable
from fleet.models import CallerCounter, CallerHour, CallerReading, Cluster
from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.domain.caller_metrics import Counter
from fleet.telemetry.domain.gateway_metrics import NotMetrics
from fleet.telemetry.services import callers
from fleet.telemetry.services.callers import CallersReading, CountedDeployment
from tests.fixtures.prometheus import RealPrometheus
from tests.fleet import objects
from tests.fleet.fakes import FakeKube

HOUR = objects.START.replace(minute=0, second=0, microsecond=0)
DETECTOR = CountedDeployment(
    team_slug="vision",
    namespace="vision",
    name="detector",
    callers={"billing.1": "billing", "billing.2": "billing", "search.3": "search"},
)


def counter(client: str, proxy: str = "gw/a", series: str = "") -> Counter:
    return Counter(proxy, series, "vision", "detector", client)


def at(minutes: float) -> datetime:
    return HOUR + timedelta(minutes=minutes)


def reading(minutes: float, *, proxy: str = "gw/a", **counts: int) -> CallersReading:
    """Keyword arguments are clients, with `_` for the dot."""
    values = {counter(name.replace("_", "."), proxy): value for name, value in counts.items()}
    return CallersReading(at(minutes), at(minutes), values, frozenset({proxy}))


def record(cluster: Cluster, *readings: CallersReading, of: CountedDeployment = DETECTOR) -> None:
    for one in readings:
        callers.record(cluster_id=cluster.pk, reading=one, deployments=[of])


def counted() -> dict[tuple[int, str], tuple[int, int]]:
    """By hour and caller: requests, and the seconds in which callers were counted."""
    return {
        ((row.hour - HOUR) // timedelta(hours=1), row.caller): (
            row.requests,
            row.observed_ms // 1000,
        )
        for row in CallerHour.objects.all()
    }


@pytest.mark.parametrize(
    ("before", "after", "known", "is_new", "expected"),
    [
        ({"a": 5}, {"a": 9}, {"gw/a"}, set(), {"a": 4}),
        # The proxy restarted.
        ({"a": 5}, {"a": 3}, {"gw/a"}, set(), {"a": 3}),
        # A key that came since, of a proxy that was there.
        ({"a": 5}, {"a": 5, "b": 2}, {"gw/a"}, set(), {"a": 0, "b": 2}),
        # A proxy of which nothing is known: only what cannot be old.
        ({}, {"a": 700, "b": 2}, set(), {"b"}, {"a": 0, "b": 2}),
        # It did not answer for a while: nothing is lost, and nothing counted twice.
        ({"a": 5}, {}, {"gw/a"}, set(), {}),
    ],
)
def test_increases(
    before: dict[str, int],
    after: dict[str, int],
    known: set[str],
    is_new: set[str],
    expected: dict[str, int],
) -> None:
    def of(counts: dict[str, int]) -> dict[Counter, int]:
        return {counter(client): value for client, value in counts.items()}

    new = {counter(client).place for client in is_new}
    assert caller_metrics.increases(of(before), of(after), known=known, is_new=new) == of(expected)


@pytest.mark.django_db
def test_keys_of_a_caller_count_together_in_the_hour_in_which_they_were_read(
    cluster: Cluster,
) -> None:
    record(
        cluster,
        reading(58, billing_1=1000, search_3=7),
        reading(59, billing_1=1010, search_3=7),
        # Rotated: both keys work.
        reading(61, billing_1=1012, billing_2=5, search_3=7),
        # The proxy restarted, and the old key was revoked.
        reading(62, billing_2=4, search_3=1),
    )

    assert counted() == {
        (0, ""): (0, 60),
        (0, "billing"): (10, 0),
        (1, ""): (0, 180),
        (1, "billing"): (2 + 5 + 4, 0),
        (1, "search"): (1, 0),
    }


@pytest.mark.django_db
def test_a_reading_twice_or_too_late_changes_nothing(cluster: Cluster) -> None:
    first, second = reading(1, billing_1=10), reading(2, billing_1=30)
    overlapping = replace(reading(3, billing_1=20), began_at=at(1.5))
    record(cluster, first, second)
    before = counted(), CallerCounter.objects.get().value

    record(cluster, second, first, overlapping)

    assert (counted(), CallerCounter.objects.get().value) == before
    assert before == ({(0, ""): (0, 60), (0, "billing"): (20, 0)}, 30)


@pytest.mark.django_db
def test_after_a_long_gap_requests_count_but_the_time_is_not_known(cluster: Cluster) -> None:
    record(cluster, reading(1, billing_1=10), reading(50, billing_1=500))

    assert counted() == {(0, ""): (0, 0), (0, "billing"): (490, 0)}


@pytest.mark.django_db
def test_a_proxy_that_is_new_counts_from_zero_unless_it_may_have_come_long_ago(
    cluster: Cluster,
) -> None:
    record(
        cluster,
        reading(1, billing_1=10),
        reading(2, proxy="gw/b", billing_1=7),
        reading(50, proxy="gw/c", billing_1=5000),
    )

    assert counted() == {(0, ""): (0, 60), (0, "billing"): (7, 0)}


@pytest.mark.django_db
def test_a_new_key_counts_from_its_first_request_and_an_old_one_from_the_first_reading(
    cluster: Cluster,
) -> None:
    record(
        cluster,
        reading(1, billing_1=9000, search_3=3),
        of=replace(DETECTOR, new_clients=frozenset({"search.3"})),
    )

    assert counted() == {(0, ""): (0, 0), (0, "search"): (3, 0)}


@pytest.mark.django_db
def test_other_routes_and_clients_without_a_key_for_the_route_are_not_counted(
    cluster: Cluster,
) -> None:
    foreign = {
        Counter("gw/a", "", "vision", "other", "billing.1"): 50,
        Counter("gw/a", "", "nlp", "detector", "billing.1"): 50,
        counter("stranger.9"): 50,
        counter("billing.1"): 5,
    }
    start = CallersReading(at(1), at(1), dict.fromkeys(foreign, 0), frozenset({"gw/a"}))
    record(cluster, start, CallersReading(at(2), at(2), foreign, frozenset({"gw/a"})))

    assert counted() == {(0, ""): (0, 60), (0, "billing"): (5, 0)}
    assert CallerCounter.objects.get().client == "billing.1"


@pytest.mark.django_db
def test_a_counter_of_a_current_key_is_kept_however_long_it_says_nothing(cluster: Cluster) -> None:
    """Once forgotten, it would count in full again."""
    record(cluster, reading(0, billing_1=100, search_3=1), reading(1, billing_1=100, search_3=1))
    days = 60 * 24 * 30
    record(cluster, reading(days, search_3=1), reading(days + 1, billing_1=101, search_3=1))
    only_search = replace(DETECTOR, callers={"search.3": "search"})
    record(cluster, reading(2 * days, search_3=1), of=only_search)

    assert {row.caller: row.requests for row in CallerHour.objects.exclude(requests=0)} == {
        "billing": 1
    }
    assert [row.client for row in CallerCounter.objects.all()] == ["search.3"]


@pytest.mark.django_db
def test_the_sweep_writes_in_a_constant_number_of_queries(
    cluster: Cluster, django_assert_num_queries: object
) -> None:
    many = {f"c{i}.{i}": f"c{i}" for i in range(300)}
    of = replace(DETECTOR, callers=many)

    def of_all(minutes: float, value: int) -> CallersReading:
        values = {counter(client): value for client in many}
        return CallersReading(at(minutes), at(minutes), values, frozenset({"gw/a"}))

    record(cluster, of_all(1, 1), of=of)
    with django_assert_num_queries(9):  # type: ignore[operator]  # pytest-django has no type for it
        record(cluster, of_all(2, 3), of=of)

    assert CallerHour.objects.filter(requests=2).count() == 300


def page(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def virtual(name: str, value: int, counter: str = "completed") -> str:
    labels = f'envoy_virtual_cluster="{name}",envoy_virtual_host="all"'
    return f"envoy_vhost_vcluster_upstream_rq_{counter}{{{labels}}} {value}"


def test_a_page_of_virtual_clusters() -> None:
    text = page(
        virtual("other", 70),
        virtual("vision/detector/billing/1", 6),
        virtual("vision/detector/billing/1", 6, "total"),
        virtual("vision/detector/search/3", 0, "total"),
    )

    assert caller_metrics.parse_page(text, proxy="gw/a") == {
        counter("billing.1"): 6,
        counter("search.3"): 0,
    }
    with pytest.raises(NotMetrics):
        caller_metrics.parse_page("<html>", proxy="gw/a")


def put_proxy(kube: FakeKube, name: str = "gw-1") -> None:
    kube.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "gateway",
                "labels": {"gateway.envoyproxy.io/owning-gateway-name": "slipway"},
                "annotations": {"prometheus.io/port": "19001", "prometheus.io/path": "/stats"},
            },
            "status": {"phase": "Running"},
        }
    )


@pytest.mark.django_db
def test_a_gateway_that_counts_no_callers_is_not_known_and_never_zero(
    kube: FakeKube, cluster: Cluster
) -> None:
    put_proxy(kube)
    kube.pages["gw-1"] = page(virtual("other", 70))

    callers.count(cluster_id=cluster.pk, deployments=[DETECTOR])

    assert not CallerHour.objects.exists()
    assert CallerReading.objects.get().problem == (
        "The gateway has no counter of callers, and Prometheus no slipway_caller_requests_total"
    )
    ((_, _, _, path),) = kube.proxied
    assert "billing" not in path


@pytest.mark.django_db
def test_a_proxy_that_does_not_answer_leaves_everything_as_it_is(
    kube: FakeKube, cluster: Cluster
) -> None:
    """Also where Prometheus would: both count the same requests."""
    Cluster.objects.update(prometheus_url="http://127.0.0.1:1")
    put_proxy(kube, "gw-1")
    put_proxy(kube, "gw-2")
    kube.pages["gw-1"] = page(virtual("vision/detector/billing/1", 6))
    kube.pages["gw-2"] = Unreachable("gw-2 is gone")

    callers.count(cluster_id=cluster.pk, deployments=[DETECTOR])

    assert not CallerHour.objects.exists()
    assert not CallerCounter.objects.exists()
    assert CallerReading.objects.get().problem == "gw-2 is gone"


@pytest.mark.django_db
def test_access_logs_in_prometheus_are_read_by_caller_and_route(
    kube: FakeKube, cluster: Cluster, prometheus: RealPrometheus
) -> None:
    Cluster.objects.update(prometheus_url=prometheus.url)
    put_proxy(kube)
    kube.pages["gw-1"] = NotAllowed("no pods/proxy")

    def series(client: str, route: str) -> str:
        labels = f'caller="{client}",route="{route}",pod="otel-0"'
        return f"slipway_caller_requests_total{{{labels}}}"

    prometheus.show(
        {
            series("billing.1", "httproute/vision/detector/rule/0/match/0/all"): 6,
            series("billing.1", "httproute/vision/detector/rule/1/match/0/all"): 2,
            series("billing.1", "httproute/nlp/detector/rule/0/match/0/all"): 9,
            series("billing.1", "tcproute/x"): 9,
        }
    )

    read = callers.read(cluster.pk)
    new = replace(DETECTOR, new_clients=frozenset({"billing.1"}))
    record(cluster, replace(read, began_at=at(1), read_at=at(1)), of=new)

    assert read.problem == ""
    assert counted() == {(0, ""): (0, 0), (0, "billing"): (8, 0)}
