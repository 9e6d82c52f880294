"""Count the requests of callers by hour, from the gateway's counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.services import gateway_probe, prometheus
from fleet.clusters.services.gateway_probe import Proxy
from fleet.gpus.domain.intervals import hour_of, milliseconds
from fleet.kube.domain.errors import ClusterError, NotAllowed
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import CallerCounter, CallerHour, CallerReading, Cluster
from fleet.telemetry.domain import caller_metrics
from fleet.telemetry.domain.caller_metrics import Counter, Counts
from fleet.telemetry.domain.counters import LONGEST_GAP
from fleet.telemetry.domain.gateway_metrics import NotMetrics
from portal.core import clock

_THREADS: Final = 8
# Of keys that ended.
_KEEP_COUNTERS: Final = timedelta(days=7)
# Namespace, route and the name that the gateway gives a caller there.
Client = tuple[str, str, str]
# Team, deployment and caller.
_Caller = tuple[str, str, str]
_FIELDS: Final = ("proxy", "series", "namespace", "route", "client")
_NOT_COUNTED: Final = (
    f"The gateway has no counter of callers, and Prometheus no {caller_metrics.METRIC}"
)


@dataclass(frozen=True, slots=True)
class CountedDeployment:
    """A deployment whose callers are counted. `callers` by the client that the gateway names: keys of one caller
    count together. `new_clients` got their keys a moment ago.
    """

    team_slug: str
    namespace: str
    name: str
    callers: Mapping[str, str]
    new_clients: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CallersReading:
    """A reading of all proxies of a cluster. `counts_all` means that a caller without a counter sent nothing.
    `is_passing` means that the same source may answer the next time.
    """

    began_at: datetime
    read_at: datetime
    counts: Counts = field(default_factory=dict)
    proxies: frozenset[str] = frozenset()
    counts_all: bool = False
    problem: str = ""
    is_passing: bool = False


def count(*, cluster_id: int, deployments: Sequence[CountedDeployment]) -> dict[Client, int]:
    """Read the gateway once and add what its callers sent since the last time. Returns the tokens that each
    client used since then. Makes network calls: run it outside transactions.
    """
    return record(cluster_id=cluster_id, reading=read(cluster_id), deployments=deployments)


def read(cluster_id: int) -> CallersReading:
    cluster = Cluster.objects.get(pk=cluster_id)
    began_at = clock.now()
    reading = _read_proxies(cluster, began_at)
    # The counters of one source must not be added to those of the other.
    if reading.counts or reading.is_passing or not cluster.prometheus_url:
        return reading
    result, of_tokens = prometheus.query(
        cluster_id=cluster.pk, queries=[caller_metrics.QUERY, caller_metrics.TOKENS_QUERY]
    )
    at = clock.now()
    if isinstance(result, PrometheusError):
        return CallersReading(began_at, at, problem=result.message)
    if result.warnings:
        problem = f"Prometheus warns that data may be missing: {result.warnings[0]}"
        return CallersReading(began_at, at, problem=problem)
    counts = caller_metrics.read_access_logs(result.samples)
    if not counts:
        return CallersReading(began_at, at, problem=_NOT_COUNTED)
    if not isinstance(of_tokens, PrometheusError) and not of_tokens.warnings:
        counts |= caller_metrics.tokens_of_access_logs(of_tokens.samples)
    proxies = frozenset(counter.proxy for counter in counts)
    return CallersReading(began_at, at, counts, proxies, counts_all=True)


def _read_proxies(cluster: Cluster, began_at: datetime) -> CallersReading:
    gateway = (cluster.gateway_namespace, cluster.gateway_name)
    try:
        client = clients.connect(clients.build_connection(cluster))
        proxies = gateway_probe.list_proxies(client, gateway)
        counts: dict[Counter, int] = {}
        if proxies:
            with ThreadPoolExecutor(min(_THREADS, len(proxies))) as pool:
                for page in pool.map(lambda proxy: _read_page(client, proxy), proxies):
                    counts |= page
    except NotAllowed as error:
        return CallersReading(began_at, clock.now(), problem=error.message)
    except NotMetrics as error:
        return CallersReading(began_at, clock.now(), problem=f"The gateway's metrics {error}")
    except ClusterError as error:
        return CallersReading(began_at, clock.now(), problem=error.message, is_passing=True)
    names = frozenset(_name_of(proxy) for proxy in proxies)
    problem = "" if counts else _NOT_COUNTED
    return CallersReading(began_at, clock.now(), counts, names, problem=problem)


def _read_page(client: KubeClient, proxy: Proxy) -> dict[Counter, int]:
    text = proxy.read(client, only=caller_metrics.PAGE_FILTER)
    return caller_metrics.parse_page(text, proxy=_name_of(proxy))


def _name_of(proxy: Proxy) -> str:
    return f"{proxy.namespace}/{proxy.pod}"


def record(
    *, cluster_id: int, reading: CallersReading, deployments: Sequence[CountedDeployment]
) -> dict[Client, int]:
    """Record a reading. A reading that overlaps the last one in time is discarded, because it may be the older; so
    it is idempotent. Returns tokens by client.
    """
    with transaction.atomic():
        CallerReading.objects.get_or_create(cluster_id=cluster_id)
        last = CallerReading.objects.select_for_update().get(cluster_id=cluster_id)
        if last.read_at is not None and reading.began_at < last.read_at:
            return {}
        if reading.problem:
            CallerReading.objects.filter(pk=last.pk).update(problem=reading.problem)
            return {}
        before = _last_counts(cluster_id)
        after = _of_callers(reading.counts, deployments)
        new = {
            (item.namespace, item.name, client)
            for item in deployments
            for client in item.new_clients
        }
        observed_ms = _observed_ms(last.read_at, reading.read_at)
        # A proxy that was not there a moment ago has counted nothing before.
        known = reading.proxies if observed_ms else last.proxies
        increased = caller_metrics.increases(before, after, known=known, is_new=new)
        sums = _by_caller(increased, deployments, counts_all=reading.counts_all)
        _add_to_hour(hour_of(reading.read_at), sums, observed_ms)
        _keep(cluster_id, before, after, reading.read_at, deployments)
        CallerReading.objects.filter(pk=last.pk).update(
            read_at=reading.read_at, proxies=sorted(reading.proxies), problem=""
        )
    return _tokens_of(increased)


def _tokens_of(increased: Counts) -> dict[Client, int]:
    tokens: dict[Client, int] = defaultdict(int)
    for counter, value in increased.items():
        if counter.is_of_tokens and value:
            tokens[counter.place] += value
    return dict(tokens)


def _last_counts(cluster_id: int) -> dict[Counter, int]:
    rows = CallerCounter.objects.filter(cluster_id=cluster_id).values_list(*_FIELDS, "value")
    return {Counter(*names): value for *names, value in rows}


def _of_callers(counts: Counts, deployments: Iterable[CountedDeployment]) -> dict[Counter, int]:
    """Drop the counters of other routes, and of clients that have no key for the route."""
    callers = {(item.namespace, item.name): item.callers for item in deployments}
    return {
        counter: value
        for counter, value in counts.items()
        if counter.client in callers.get((counter.namespace, counter.route), {})
    }


def _observed_ms(before: datetime | None, after: datetime) -> int:
    """Longer ago, it is not known when the requests between the two happened."""
    if before is None or after - before > LONGEST_GAP:
        return 0
    return milliseconds(after) - milliseconds(before)


def _by_caller(
    increased: Counts, deployments: Iterable[CountedDeployment], *, counts_all: bool
) -> dict[_Caller, int]:
    """Sum the requests by caller, with an empty caller for each deployment whose callers were counted."""
    by_place: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for counter, requests in increased.items():
        if counter.is_of_tokens:
            continue
        by_place[counter.namespace, counter.route].append((counter.client, requests))
    sums: dict[_Caller, int] = defaultdict(int)
    for item in deployments:
        counted = by_place.get((item.namespace, item.name), [])
        if counted or counts_all:
            sums[item.team_slug, item.name, ""] = 0
        for client, requests in counted:
            if requests:
                sums[item.team_slug, item.name, item.callers[client]] += requests
    return sums


def _add_to_hour(hour: datetime, sums: Mapping[_Caller, int], observed_ms: int) -> None:
    rows = CallerHour.objects.filter(hour=hour, team_slug__in={team for team, _, _ in sums})
    kept = {(row.team_slug, row.deployment, row.caller): row for row in rows}
    changed = []
    for key, requests in sums.items():
        team_slug, deployment, caller = key
        row = kept.get(key) or CallerHour(
            team_slug=team_slug, deployment=deployment, caller=caller, hour=hour
        )
        row.requests += requests
        row.observed_ms += 0 if caller else observed_ms
        row.pk = None
        changed.append(row)
    CallerHour.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["team_slug", "deployment", "hour", "caller"],
        update_fields=["requests", "observed_ms"],
    )


def _keep(
    cluster_id: int,
    before: Counts,
    after: Counts,
    at: datetime,
    deployments: Iterable[CountedDeployment],
) -> None:
    changed = [counter for counter, value in after.items() if before.get(counter) != value]
    CallerCounter.objects.bulk_create(
        [
            CallerCounter(
                cluster_id=cluster_id,
                value=after[counter],
                read_at=at,
                **dict(zip(_FIELDS, astuple(counter), strict=True)),
            )
            for counter in changed
        ],
        update_conflicts=True,
        unique_fields=["cluster", *_FIELDS],
        update_fields=["value", "read_at"],
    )
    # One that is deleted and then read again would count in full.
    live = {client for item in deployments for client in item.callers}
    ended = {counter.client for counter in before} - live
    rows = CallerCounter.objects.filter(cluster_id=cluster_id, client__in=ended)
    rows.filter(read_at__lt=at - _KEEP_COUNTERS).delete()
