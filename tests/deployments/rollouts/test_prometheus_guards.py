"""Guards of a canary on a real Prometheus: pass, breach and abort, missing series, refusal."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.models import ChangeRequest, PrometheusReading, Rollout, RolloutVerdict
from deployments.plans.services import templates
from deployments.rollouts.services import actions, prometheus_readings
from deployments.states import RolloutPhase
from fleet.clusters.gateways import prometheus as gateway
from fleet.models import Cluster
from portal.core import leases
from portal.core.errors import Conflict, Invalid
from tests.deployments.canaries import send, view
from tests.deployments.rollouts.prometheus_rollouts import STEPS, begin, line, read
from tests.deployments.world import World
from tests.fixtures.prometheus import RealPrometheus
from tests.network_guard import refuse_inside_transaction

ERRORS = {
    "metric": "promql",
    "name": "Checkout errors",
    "query": 'sum(checkout_errors{pod=~"$workload-.*", namespace="$namespace"})',
    "max": 2,
}
P95 = {"metric": "latency_p95", "max": 40}
QUERY = 'sum(checkout_errors{pod=~"detector-r2-.*", namespace="vision"})'
SERIES = 'checkout_errors{{pod="detector-r{}-abc-de",namespace="{}"}}'


def errors(value: float) -> dict[str, float]:
    """The candidate's, beside those of stable and of another team, which must not count."""
    return {
        SERIES.format(2, "vision"): value,
        SERIES.format(1, "vision"): 900,
        SERIES.format(2, "nlp"): 900,
    }


def histogram(revision: int, fast: int, slow: int) -> dict[str, float]:
    name = f"vision_detector-r{revision}-predictor_80"
    series = f'envoy_cluster_upstream_rq_time_bucket{{envoy_cluster_name="{name}",le="%s"}}'
    total = fast + slow
    return {series % "10": fast, series % "50": fast, series % "100": total, series % "+Inf": total}


def test_a_value_within_its_limit_passes_and_is_promoted_on(
    world: World, prometheus: RealPrometheus
) -> None:
    prometheus.show(errors(1))
    deployment, rollout = begin(world, prometheus.url, ERRORS)

    read(world, deployment, times=2)
    waiting = view(world, rollout)
    read(world, deployment)
    passed = view(world, rollout)

    assert not waiting.is_promotable
    guard = line(world, rollout, "Checkout errors")
    assert (guard.verdict, guard.candidate, guard.limit) == ("pass", "1", "≤ 2")
    assert guard.message == "within the limit in the last 3 readings"
    assert guard.query == QUERY
    assert guard.measured_at == f"{world.clock.at:%H:%M:%S} UTC"
    assert passed.is_promotable, passed.promotable_reason
    kept = RolloutVerdict.objects.get(evidence_hash=passed.evidence_hash).guards
    assert [item["query"] for item in kept if item["guard"] == "Checkout errors"] == [QUERY]
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=passed.evidence_hash)


def test_breaches_in_a_row_abort_the_rollout_with_the_reason(
    world: World, prometheus: RealPrometheus
) -> None:
    prometheus.show(errors(7))
    deployment, rollout = begin(world, prometheus.url, ERRORS)

    read(world, deployment, times=2)
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.RUNNING
    assert line(world, rollout, "Checkout errors").message == (
        "outside ≤ 2: 2 of 3 breaches in a row"
    )
    read(world, deployment)

    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.ABORTING
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert rollout.events.get(kind="aborting").message == (
        "aborted: checkout errors: outside ≤ 2 in 3 readings in a row or more; it is 7 now"
    )


def test_series_that_vanish_neither_promote_nor_abort(
    world: World, prometheus: RealPrometheus
) -> None:
    prometheus.show(errors(1))
    deployment, rollout = begin(world, prometheus.url, ERRORS)
    read(world, deployment, times=3)
    shown = view(world, rollout)
    assert shown.is_promotable

    prometheus.vanish(SERIES.format(2, "vision"))
    read(world, deployment)

    guard = line(world, rollout, "Checkout errors")
    assert (guard.verdict, guard.message) == (
        "not enough data",
        "Prometheus has no series for the query",
    )
    with pytest.raises(Conflict) as refusal:
        actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    assert refusal.value.code == "evidence_changed"
    rollout.refresh_from_db()
    assert (rollout.phase, rollout.step_index) == (RolloutPhase.RUNNING, 0)


def test_a_prometheus_that_is_away_says_so_and_an_old_reading_is_no_reading(
    world: World, prometheus: RealPrometheus
) -> None:
    prometheus.show(errors(1))
    deployment, rollout = begin(world, prometheus.url, ERRORS)
    read(world, deployment, times=3)
    read_at = world.clock.at

    world.clock.move(41)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(deployment)
    old = line(world, rollout, "Checkout errors")
    Cluster.objects.update(prometheus_url="http://127.0.0.1:1")
    read(world, deployment)
    away = line(world, rollout, "Checkout errors")

    assert old.verdict == away.verdict == "not enough data"
    assert old.message == f"no data from Prometheus since {read_at:%H:%M:%S} UTC"
    assert away.message.startswith("http://127.0.0.1:1/api/v1/query does not answer: ")
    rollout.refresh_from_db()
    assert rollout.phase == RolloutPhase.RUNNING


def test_a_percentile_of_the_gateways_histogram_passes_then_fails_and_aborts(
    world: World, prometheus: RealPrometheus
) -> None:
    prometheus.show({**histogram(1, 5000, 0), **histogram(2, 50, 50)})
    deployment, rollout = begin(world, prometheus.url, P95)
    read(world, deployment)
    assert line(world, rollout, "Latency p95").message == (
        "no requests are in the candidate's histogram at this step yet"
    ), "what was before the step does not count"

    prometheus.show({**histogram(1, 6000, 0), **histogram(2, 250, 50)})
    read(world, deployment)
    good = line(world, rollout, "Latency p95")
    slow = 0
    while Rollout.objects.get().phase == RolloutPhase.RUNNING:
        slow += 100
        assert slow < 2000
        prometheus.show(
            {**histogram(1, 6000 + 10 * slow, 0), **histogram(2, 250 + slow, 50 + slow)}
        )
        read(world, deployment)

    assert (good.verdict, good.n) == ("pass", 200)
    assert good.source == "Envoy histogram at the gateway"
    assert good.limit == "≤ 40 ms (tested at 50 ms)"
    # How many readings that takes depends on when Prometheus scrapes.
    assert 800 <= slow <= 1400, (
        "half of the requests are slow: gross, but no single reading decides"
    )
    assert rollout.events.get(kind="aborting").message == (
        f"aborted: latency p95: slower than allowed: {slow:,} of {200 + 2 * slow:,} requests took "
        "more than 50 ms, and 5% may"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query": "sum(x"}, "Checkout errors: Prometheus refuses the query: invalid parameter"),
        ({"query": "checkout_errors[5m]"}, "the query gives a matrix, not one number"),
        ({"query": "checkout_errors"}, "the query gives 3 series, not one number; aggregate them"),
    ],
)
def test_a_query_that_fails_is_refused_at_the_request(
    world: World, prometheus: RealPrometheus, changed: dict[str, Any], message: str
) -> None:
    prometheus.show(errors(1))

    with pytest.raises(Invalid) as refusal:
        begin(world, prometheus.url, {**ERRORS, **changed})

    assert message in refusal.value.fields["guards"]
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_without_a_prometheus_such_guards_are_refused_and_others_are_not(world: World) -> None:
    with pytest.raises(Invalid) as refusal:
        begin(world, "", P95)

    assert refusal.value.fields["guards"] == (
        "No Prometheus is registered for cluster eks-test. Leave out percentiles and PromQL, or ask "
        "a platform admin to register it."
    )
    kept = templates.save(
        actor=world.member, team=world.team, name="p95", steps=STEPS, plan={"guards": [P95]}
    )
    assert kept.plan["guards"] == [
        {**P95, "max": 40.0, "max_ratio": None, "ignore_below": 2.0, "dry_run": False}
    ]


def test_one_that_does_not_answer_now_refuses_no_request(world: World) -> None:
    _, rollout = begin(world, "http://127.0.0.1:1", ERRORS)

    assert rollout.phase == RolloutPhase.RUNNING


def test_a_rollout_without_such_guards_is_never_read(world: World) -> None:
    begin(world, "http://127.0.0.1:1", {"metric": "error_rate", "max": 0.1})

    assert not PrometheusReading.objects.exists()
    assert prometheus_readings.sweep() == 0


def test_reading_of_a_worker_that_lost_its_lease_is_thrown_away(
    world: World, prometheus: RealPrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus.show(errors(7))
    begin(world, prometheus.url, ERRORS)
    query = gateway.query

    def lose(*args: Any) -> Any:
        PrometheusReading.objects.update(lease_token="another")
        return query(*args)

    monkeypatch.setattr(gateway, "query", lose)
    prometheus_readings.sweep()

    assert PrometheusReading.objects.get().state == {}


@pytest.mark.django_db(transaction=True)
def test_prometheus_is_queried_outside_transactions_and_not_after_the_end(
    world: World, prometheus: RealPrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls: list[str] = []
    query = gateway.query

    def outside(endpoint: Any, queries: Any) -> Any:
        refuse_inside_transaction("Prometheus")
        urls.extend(queries)
        return query(endpoint, queries)

    monkeypatch.setattr(gateway, "query", outside)
    prometheus.show(errors(1))
    _, rollout = begin(world, prometheus.url, ERRORS)
    prometheus_readings.sweep()
    assert urls == [QUERY, QUERY], "tried at the request, then read"

    Rollout.objects.update(phase=RolloutPhase.ABORTED)
    reading = PrometheusReading.objects.get()
    leases.nudge(PrometheusReading, reading.pk)
    prometheus_readings.sweep()

    assert len(urls) == 2
    assert PrometheusReading.objects.get().next_check_at is None
    assert rollout.steps[0]["weight"] == 10
