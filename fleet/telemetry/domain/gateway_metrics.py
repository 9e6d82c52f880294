"""Requests that a gateway sent to the Services of revisions, and those of them that never came back.

A server counts the requests that it answers. One that hangs, is killed or drops a connection leaves no
trace in its own counters; the gateway counts it. Read are:

- Envoy's counters of a cluster (`envoy_cluster_*`), where a cluster is one Service, whose names are part
  of its name. Over HTTP/1.1 each connection carries one request at a time, so a request that was sent
  and not answered in full is a connection destroyed with an active request, whoever gave up: the
  gateway's timeout, the server, or the client. Over HTTP/2 it is a stream that was reset or ended with
  its connection. Requests that reached no pod are counted apart, and each retry takes one of them back.
- Istio's `istio_requests_total` at the caller, with a flag of Envoy's access log for each request that had
  no answer of the server.

An answer of the server is never lost, whatever its status: the server counts that itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fleet.clusters.domain.prometheus import PrometheusSample
from fleet.telemetry.domain import exposition

_ENVOY: Final = "envoy_cluster_upstream_"
_ISTIO: Final = "istio_requests_total"
_NEVER_SENT: Final = ("rq_pending_overflow", "rq_cancelled", "cx_none_healthy")
_READ: Final = (
    "rq_total",
    "rq_completed",
    "rq_retry",
    "rq_pending_failure_eject",
    "rq_rx_reset",
    "rq_tx_reset",
    "cx_http2_total",
    "cx_destroy_with_active_rq",
    *_NEVER_SENT,
)
_NAMES: Final = frozenset({_ISTIO, *(_ENVOY + name for name in _READ)})
# What one page is limited to where Envoy itself answers: its own names of the same counters.
PAGE_FILTER: Final = rf"upstream_({'|'.join(_READ)})$|{_ISTIO}"
# Envoy's flags of requests without an answer of the server: timeouts, resets, no healthy pod, overflow,
# protocol errors, exhausted retries, clients that left before it answered.
_LOST_FLAGS: Final = frozenset(
    ["UT", "UC", "UR", "UF", "UH", "UO", "UPE", "URX", "UMSDR", "LR", "LH", "SI", "DC", "DT"]
)
# Some gateways cut or join names by these.
_SEPARATORS: Final = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Passed:
    """Since a proxy started. `lost` of the `requests` never came back."""

    requests: int = 0
    lost: int = 0


# By proxy, for one revision.
PassedByProxy = Mapping[str, Passed]


class NotMetrics(Exception):
    """The text is not Prometheus metrics."""


def parse_page(text: str) -> list[PrometheusSample]:
    """Return the samples of a proxy's page that are read here, with `__name__`. Raises NotMetrics, also if one of
    them is no count: without it the proxy would look as if it had started again.
    """
    read: list[PrometheusSample] = []
    is_page = False
    try:
        for written, labels, value in exposition.samples(text):
            is_page |= exposition.is_known(value)
            if (name := _name_of(written)) and "envoy_response_code" not in labels:
                if not exposition.is_known(value):
                    raise NotMetrics(f"{written} is negative or not a number")
                of_sample = exposition.parse_labels(labels)
                read.append(PrometheusSample(value, {**of_sample, "__name__": name}))
    except ValueError as error:
        raise NotMetrics(f"cannot be read: {error}") from error
    if text.strip() and not is_page:
        raise NotMetrics("has no metrics")
    return read


def build_query(*, namespace: str, services: Iterable[str]) -> str:
    """Return the PromQL for the same samples of these Services, by the proxy that counted them."""
    names = "|".join(sorted(services))
    cluster = f'envoy_cluster_name=~"(.*[^a-z0-9-])?({names})([^a-z0-9-].*)?"'
    within = f'envoy_cluster_name=~"(.*[^a-z0-9-])?{namespace}([^a-z0-9-].*)?"'
    envoy = f'{{__name__=~"{_ENVOY}({"|".join(_READ)})",{cluster},{within}}}'
    istio = (
        f'{_ISTIO}{{reporter="source",destination_service_namespace="{namespace}",'
        f'destination_service_name=~"{names}"}}'
    )
    return f"{envoy} or {istio}"


def count_requests(
    samples: Iterable[PrometheusSample], *, namespace: str, services: Iterable[str], proxy: str = ""
) -> dict[str, dict[str, Passed]]:
    """Return the counts by Service and proxy. A Service that no proxy counts is left out.

    `proxy` names the proxy whose page it is; else its `pod` or `instance` label does.
    """
    listed = frozenset(services)
    envoy: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    istio: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample in samples:
        labels = sample.labels
        if not exposition.is_known(sample.value):
            continue
        by = proxy or labels.get("pod") or labels.get("instance", "")
        name = _name_of(labels.get("__name__", ""))
        if name == _ISTIO:
            if service := _istio_service(labels, namespace, listed):
                counts = istio[service, by]
                counts[0] += sample.value
                counts[1] += sample.value if _is_lost(labels) else 0
        elif name and "envoy_response_code" not in labels:
            cluster = labels.get("envoy_cluster_name", "")
            if service := _envoy_service(cluster, namespace, listed):
                envoy[service, by, cluster][name.removeprefix(_ENVOY)] += sample.value
    # One request is in both where Istio's proxies export the counters of their clusters too.
    totals = _sums(envoy) or {key: Passed(int(n), int(lost)) for key, (n, lost) in istio.items()}
    counted: dict[str, dict[str, Passed]] = {}
    for (service, by), of_proxy in totals.items():
        counted.setdefault(service, {})[by] = of_proxy
    return counted


def increase(before: PassedByProxy, after: PassedByProxy) -> Passed:
    """Return what passed between two readings. The first reading of a new proxy is its start; a restarted proxy
    counts from zero.
    """
    requests = lost = 0
    for proxy, now in after.items():
        earlier = before.get(proxy)
        if earlier is None:
            continue
        start = Passed() if now.requests < earlier.requests else earlier
        requests += now.requests - start.requests
        # A retry that is not sent yet already counts as one: never less than nothing.
        lost += max(0, now.lost - start.lost)
    return Passed(requests, min(lost, requests))


def merge_counts(before: PassedByProxy, after: PassedByProxy) -> dict[str, Passed]:
    """Return the starts of the next increase. A proxy that did not answer keeps its last counts."""
    kept = dict(before)
    for proxy, now in after.items():
        earlier = before.get(proxy, Passed())
        is_restarted = now.requests < earlier.requests
        kept[proxy] = now if is_restarted else Passed(now.requests, max(now.lost, earlier.lost))
    return kept


def _sums(
    clusters: Mapping[tuple[str, str, str], Mapping[str, float]],
) -> dict[tuple[str, str], Passed]:
    """A Service has one cluster for each of its ports."""
    sums: dict[tuple[str, str], Passed] = {}
    for (service, proxy, _), counters in clusters.items():
        before = sums.get((service, proxy), Passed())
        added = _of_cluster(counters)
        sums[service, proxy] = Passed(before.requests + added.requests, before.lost + added.lost)
    return sums


def _of_cluster(counters: Mapping[str, float]) -> Passed:
    def of(*names: str) -> int:
        return int(sum(counters.get(name, 0) for name in names))

    unsent = of("rq_pending_failure_eject", *_NEVER_SENT) - of("rq_retry")
    is_http2 = of("cx_http2_total") > 0
    broken = of("rq_rx_reset", "rq_tx_reset") if is_http2 else of("cx_destroy_with_active_rq")
    lost = max(0, broken + unsent)
    return Passed(requests=max(of("rq_total"), of("rq_completed"), lost), lost=lost)


def _name_of(name: str) -> str:
    """OpenMetrics adds `_total` to the names of counters that lack it."""
    return next((read for read in (name, name.removesuffix("_total")) if read in _NAMES), "")


def _envoy_service(cluster: str, namespace: str, services: frozenset[str]) -> str:
    """Gateways name the cluster of a Service in their own ways, all with both names in it."""
    parts = set(_SEPARATORS.split(cluster))
    named = parts & services if namespace in parts else set()
    return next(iter(named), "") if len(named) == 1 else ""


def _istio_service(labels: Mapping[str, str], namespace: str, services: frozenset[str]) -> str:
    is_caller = labels.get("reporter", "source") == "source"
    name = labels.get("destination_service_name", "")
    is_here = labels.get("destination_service_namespace") == namespace
    return name if is_caller and is_here and name in services else ""


def _is_lost(labels: Mapping[str, str]) -> bool:
    return any(flag in _LOST_FLAGS for flag in _flags(labels.get("response_flags", "-")))


def _flags(text: str) -> Iterator[str]:
    yield from text.split(",")
