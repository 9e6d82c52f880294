"""Every trigger on Prometheus that the form offers, read by KEDA itself: a metric moves in a real Prometheus, and
the real HPA controller changes the number of replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from deployments.spec.domain.engines import ENGINES, LLM_SERVICE
from deployments.spec.domain.scaling import DEFAULT_TARGETS, KEDA
from fleet.kube.services import objects
from portal.core.definitions import Rejected
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.prometheus_triggers import Case, cases, for_all
from tests.cluster.scaled import revision_with, spec_scaled_by, wait_for_all
from tests.fixtures.prometheus import RealPrometheus

_LIMITS = ("max_latency_ms", "max_gpu_memory_percent")


def _watched(scaling: Mapping[str, Any]) -> str:
    """A limit where there is one: it stands beside a metric."""
    return next((limit for limit in _LIMITS if limit in scaling), str(scaling.get("metric")))


def _is_offered(engine: str, scaling: Mapping[str, Any]) -> bool:
    try:
        spec_scaled_by({"kind": KEDA, **scaling}, engine)
    except Rejected:
        return False
    return True


def test_the_table_has_every_trigger_that_the_form_offers() -> None:
    metrics: list[dict[str, Any]] = [
        {"metric": metric} for kind, metric in DEFAULT_TARGETS if kind == KEDA
    ]
    limits: list[dict[str, Any]] = [{"metric": "gpu", limit: 50} for limit in _LIMITS]
    offered = {
        (engine, _watched(scaling))
        for engine in ENGINES
        for scaling in [*metrics, *limits]
        if _is_offered(engine, scaling)
    }

    assert {(case.engine, _watched(case.trigger.scaling)) for case in cases()} == offered
    assert {engine for engine, _ in offered} == set(ENGINES) - {LLM_SERVICE}


def test_keda_adds_replicas_when_a_metric_rises_and_removes_them_when_it_falls(
    scaled: Scaled, prometheus: RealPrometheus, journey: Callable[[str], None]
) -> None:
    """All at once, each with its own deployment: a reading is due every 15 seconds."""
    every, namespace = list(cases()), scaled.context.namespace
    gauges = for_all(every, lambda trigger: trigger.gauges, namespace)
    counters = for_all(every, lambda trigger: trigger.counters, namespace)
    at_rest = dict.fromkeys(gauges, 0.0)
    prometheus.show({**at_rest, **dict.fromkeys(counters, 1.0)})
    for case in every:
        _apply(scaled, case, prometheus.url)
    wait_for_all(scaled.admin, namespace, {case.target: 1 for case in every}, scaled.keda_logs)

    risen = {name: 1 + rise for name, rise in counters.items()}
    prometheus.show({**gauges, **risen})
    expected = {case.target: case.trigger.replicas for case in every}
    wait_for_all(scaled.admin, namespace, expected, scaled.keda_logs)

    prometheus.show({**at_rest, **risen})
    of_gauges = {case.target: 1 for case in every if case.trigger.gauges}
    wait_for_all(scaled.admin, namespace, of_gauges, scaled.keda_logs)
    journey(
        f"KEDA: {len(every)} triggers on Prometheus, of {len({c.engine for c in every})} engines"
    )


def _apply(scaled: Scaled, case: Case, prometheus_url: str) -> None:
    context = replace(scaled.context, deployment=case.deployment, prometheus_url=prometheus_url)
    spec = spec_scaled_by(
        {"kind": KEDA, **case.trigger.scaling}, case.engine, case.trigger.most_replicas
    )
    objects.apply(cluster_id=scaled.cluster_id, manifests=revision_with(context, spec))
