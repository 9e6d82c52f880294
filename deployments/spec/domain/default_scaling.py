"""The autoscaler of a spec that requests a range of replicas and names none.

A GPU service waits for its GPU, so CPU says nothing of its load: only queues and requests in flight
do, and only where the cluster can measure them.
"""

from __future__ import annotations

from collections.abc import Iterator

from deployments.spec.domain.scaling import (
    AUTOMATIC,
    FIXED,
    KEDA,
    KNATIVE,
    Scaling,
    ScalingKind,
)
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities
from portal.core.definitions import Rejected


def resolve(
    spec: ServingSpec, offered: Capabilities, *, prometheus_url: str, is_in_place: bool = False
) -> ServingSpec:
    """Choose the autoscaler of a spec that names none. It scales by the engine's load with KEDA, which needs
    what scrapes it; else by requests in flight with Knative; else it is fixed at its min replicas.

    In place means the pods that run stay: Knative scales only pods that it started.
    """
    if spec.scaling.kind != AUTOMATIC:
        return spec
    for way in _ways(offered, prometheus_url, is_in_place=is_in_place):
        try:
            return _with(spec, way)
        except Rejected:
            continue  # `explain` says why.
    fixed = spec.scaling.replace(kind=FIXED)
    return spec.replace(scaling=fixed, max_replicas=spec.min_replicas)


def explain(
    requested: ServingSpec,
    resolved: ServingSpec,
    offered: Capabilities,
    *,
    is_in_place: bool = False,
) -> str:
    """Explain the autoscaler that was chosen. Empty where the request named it."""
    if requested.scaling.kind != AUTOMATIC:
        return ""
    if resolved.scaling.kind == KEDA:
        if resolved.scaling.metric == "first-token":
            return "KEDA scales on the time to the first token, scraped by a ServiceMonitor."
        return "KEDA scales on queued requests, scraped by a ServiceMonitor."
    if resolved.scaling.kind == KNATIVE:
        return "Knative scales on requests in flight."
    count = resolved.min_replicas
    why = " ".join(dict.fromkeys(_obstacles(requested, offered, is_in_place=is_in_place)))
    return (
        f"Fixed at {count} replica{'' if count == 1 else 's'}: request queues can't be "
        f"measured on this cluster, and CPU is a poor signal for GPU load. {why}"
    ).strip()


def _ways(
    offered: Capabilities, prometheus_url: str, *, is_in_place: bool
) -> Iterator[ScalingKind]:
    is_scraped = offered.offers("service-monitor").ok and prometheus_url
    if offered.offers(KEDA).ok and is_scraped:
        yield KEDA
    if offered.offers(KNATIVE).ok and not is_in_place:
        yield KNATIVE


def _obstacles(spec: ServingSpec, offered: Capabilities, *, is_in_place: bool) -> Iterator[str]:
    """Yield what the cluster lacks, and why what it has cannot scale this spec."""
    for name in (KEDA, "service-monitor", KNATIVE):
        offer = offered.offers(name)
        if offer.ok is not True and offer.why:
            yield offer.why
    for kind in (KEDA, KNATIVE):
        if not offered.offers(kind).ok:
            continue
        if kind == KNATIVE and is_in_place:
            yield "Knative scales only pods that it started: request a canary that names knative."
            continue
        try:
            _with(spec, kind)
        except Rejected as error:
            yield from error.fields.values()


def _with(spec: ServingSpec, kind: ScalingKind) -> ServingSpec:
    seconds = spec.scaling.cooldown_seconds
    made = spec.replace(scaling=Scaling(kind=kind, cooldown_seconds=seconds))
    if kind == KEDA:
        made = made.replace(network=spec.network.replace(service_monitor=True))
    return made
