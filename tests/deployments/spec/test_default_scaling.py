"""Which autoscaler a range of replicas gets, and what an autoscaler may watch."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Network, Scaling, ServingSpec
from fleet.clusters.domain.prometheus import PrometheusSample, PrometheusUnreachable, QueryResult
from fleet.clusters.services import prometheus
from fleet.models import Cluster
from portal.core.errors import Invalid
from tests.deployments.cluster_features import can
from tests.deployments.refusals import refused
from tests.deployments.world import World

AUTOMATIC = Scaling()


def requested(world: World, **changed: Any) -> ServingSpec:
    values = {"min_replicas": 2, "max_replicas": 4, "scaling": AUTOMATIC, **changed}
    change = requests.request_deploy(actor=world.member, draft=world.draft(**values))
    assert change.revision is not None
    return ServingSpec(**_fields(change.revision.spec))


def _fields(spec: dict[str, Any]) -> dict[str, Any]:
    kept = ("engine", "instance_type", "min_replicas", "max_replicas")
    made = {name: spec[name] for name in kept}
    return {**made, "scaling": Scaling(**spec["scaling"]), "network": Network(**spec["network"])}


def scaling_check(world: World, **changed: Any) -> Check | None:
    values = {"min_replicas": 2, "max_replicas": 4, **changed}
    result = preflight.check(actor=world.member, draft=world.draft(**values))
    return next((check for check in result.checks if check.name == "Scaling"), None)


def test_range_scales_by_queue_where_keda_and_prometheus_are_there(world: World) -> None:
    can("keda", "prometheus", "kserve-knative")

    spec = requested(world)

    assert (spec.scaling.kind, spec.scaling.metric) == ("keda", "queue")
    assert spec.network.service_monitor, "what it watches is scraped"
    assert (spec.min_replicas, spec.max_replicas) == (2, 4)


def test_range_scales_by_requests_in_flight_with_knative_alone(world: World) -> None:
    can("keda", "kserve-knative")

    spec = requested(world)

    assert (spec.scaling.kind, spec.scaling.metric) == ("knative", "concurrency")


def test_range_is_fixed_where_nothing_sees_the_load_and_says_why(world: World) -> None:
    can("keda")

    spec = requested(world)
    check = scaling_check(world, scaling=AUTOMATIC)

    assert (spec.scaling.kind, spec.min_replicas, spec.max_replicas) == ("fixed", 2, 2)
    assert check is not None
    assert check.detail.startswith(
        "Fixed at 2 replicas: request queues can't be measured on this cluster, and CPU is a poor "
        "signal for GPU load. Prometheus operator is not installed"
    )
    assert not check.is_refusal


def test_engine_that_knative_cannot_scale_is_fixed(world: World) -> None:
    can("kserve-knative")

    assert requested(world, engine="triton").scaling.kind == "fixed"


def test_metric_that_nothing_scrapes_is_refused(world: World) -> None:
    can("keda", "prometheus")
    keda = Scaling(kind="keda")

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(max_replicas=2, scaling=keda))
    scraped = scaling_check(world, scaling=keda, network=Network(service_monitor=True))

    assert "nv_inference_pending_request_count is not scraped" in raised[0].message
    assert "Turn service_monitor on" in raised[0].fields["scaling"]
    assert scraped is not None
    assert scraped.ok is True


@pytest.mark.parametrize(
    ("answer", "ok"),
    [
        (QueryResult("vector", (PrometheusSample(1.0),)), True),
        (QueryResult("vector", ()), False),
        (PrometheusUnreachable("It does not answer"), None),
    ],
)
def test_a_registered_prometheus_is_queried(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: object, ok: bool | None
) -> None:
    can("keda")
    Cluster.objects.update(prometheus_url="http://prometheus.example")
    sent: list[object] = []

    def query(*, cluster_id: int, queries: list[str]) -> list[object]:
        sent.extend(queries)
        return [answer]

    monkeypatch.setattr(prometheus, "query", query)

    check = scaling_check(world, scaling=Scaling(kind="keda", metric="gateway-latency"))

    assert sent == ["count(istio_request_duration_milliseconds_bucket)"]
    assert check is not None
    assert check.ok is ok


def test_an_explicit_cpu_metric_gets_a_warning(world: World) -> None:
    check = scaling_check(world, scaling=Scaling(kind="hpa"))

    assert check is not None
    assert (check.ok, check.is_refusal) == (None, False)
    assert "a poor signal for GPU load" in check.detail
