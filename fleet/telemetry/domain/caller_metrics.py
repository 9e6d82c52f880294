"""Requests of each caller, as a gateway counts them: what is read, and what it means since the last reading.

- The embedded cluster's Envoy has a virtual cluster for each client of a route, `namespace/route/client` with a
  slash for each dot of the client; one that a claim of a token names is `~` and the hexadecimal digits of its
  UTF-8. It counts what it answered; a refused key is none of them.
- Envoy Gateway has no such counter. A platform can count the access log of its proxies: Prometheus then has
  `slipway_caller_requests_total` with the labels `caller` and `route` (docs/callers.md).
- Tokens have the same labels: `slipway_caller_tokens_total` in Prometheus; the embedded cluster's Envoy counts
  them itself.

A client is the name that the gateway gives a request once its key was accepted. No key is in any name here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from fleet.clusters.domain.prometheus import PrometheusSample
from fleet.telemetry.domain import exposition
from fleet.telemetry.domain.gateway_metrics import NotMetrics

# Envoy's own names of its counters: what one page is limited to.
PAGE_FILTER: Final = r"\.vcluster\..+\.upstream_rq_(completed|total)$|^slipway\.caller_tokens"
METRIC: Final = "slipway_caller_requests_total"
QUERY: Final = METRIC
TOKENS_QUERY: Final = "slipway_caller_tokens_total"
_ENVOY_TOKENS: Final = "envoy_slipway_caller_tokens"
_TOKENS: Final = "tokens"
_ENVOY: Final = "envoy_vhost_vcluster_upstream_rq_"
# A caller that was not served yet has only the second, 0.
_COMPLETED, _TOTAL = f"{_ENVOY}completed", f"{_ENVOY}total"
_READ: Final = frozenset({_ENVOY_TOKENS, _COMPLETED, _TOTAL.removesuffix("_total")})


@dataclass(frozen=True, slots=True, order=True)
class Counter:
    """One counter of one proxy. `series` tells those of a client apart that it counts separately."""

    proxy: str
    series: str
    namespace: str
    route: str
    client: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Another deployment may have a client of the same name."""
        return (self.namespace, self.route, self.client)

    @property
    def is_of_tokens(self) -> bool:
        """Whether the counter counts tokens. Otherwise it counts requests."""
        return self.series == _TOKENS or self.series.startswith(f"{_TOKENS}:")


Counts = Mapping[Counter, int]


def parse_page(text: str, *, proxy: str) -> dict[Counter, int]:
    """Read Envoy's page of metrics. Raises NotMetrics, also where one of the counters is no count."""
    counts: dict[Counter, int] = {}
    is_page = False
    try:
        for written, labels, value in exposition.samples(text):
            is_page |= exposition.is_known(value)
            # OpenMetrics adds `_total` to the names of counters that lack it.
            name = written.removesuffix("_total")
            if name not in _READ:
                continue
            if not exposition.is_known(value):
                raise NotMetrics(f"{written} is negative or not a number")
            _add(counts, name, exposition.parse_labels(labels), value, proxy)
    except ValueError as error:
        raise NotMetrics(f"cannot be read: {error}") from error
    if text.strip() and not is_page:
        raise NotMetrics("has no metrics")
    return counts


def _add(
    counts: dict[Counter, int], name: str, labels: Mapping[str, str], value: float, proxy: str
) -> None:
    if name == _ENVOY_TOKENS:
        counts |= _of_labels([PrometheusSample(value, labels)], _TOKENS, proxy)
        return
    counter = _of_virtual_cluster(labels.get("envoy_virtual_cluster", ""), proxy)
    if counter is not None:
        counts[counter] = counts.get(counter, 0) + (int(value) if name == _COMPLETED else 0)


def read_access_logs(samples: Iterable[PrometheusSample]) -> dict[Counter, int]:
    """Read the samples of QUERY. Those that name no route of the Gateway API are left out."""
    return _of_labels(samples)


def tokens_of_access_logs(samples: Iterable[PrometheusSample]) -> dict[Counter, int]:
    """Read the samples of TOKENS_QUERY."""
    return _of_labels(samples, _TOKENS)


class Labelled(Protocol):
    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def value(self) -> float: ...


def _of_labels(
    samples: Iterable[Labelled], series: str = "", proxy: str = ""
) -> dict[Counter, int]:
    counts: dict[Counter, int] = defaultdict(int)
    for sample in samples:
        labels = sample.labels
        # Envoy Gateway: httproute/<namespace>/<name>/rule/…
        kind, _, rest = labels.get("route", "").partition("/")
        parts = rest.split("/")
        client = labels.get("caller", "")
        is_counted = exposition.is_known(sample.value)
        if kind == "httproute" and len(parts) > 1 and client and is_counted:
            source = proxy or labels.get("pod") or labels.get("instance", "")
            one = series if proxy else f"{series}:{rest}" if series else rest
            counts[Counter(source, one, parts[0], parts[1], client)] += int(sample.value)
    return dict(counts)


def increases(
    before: Counts,
    after: Counts,
    *,
    known: Collection[str],
    is_new: Collection[tuple[str, str, str]],
) -> dict[Counter, int]:
    """Return the increase of each counter between two readings.

    A counter that is lower than before restarted from zero. One that was not read before started at zero if its
    proxy was read before (`known`), or if its client `is_new`: so new that no request of it can be older than what
    readings may miss. Otherwise its requests have an unknown time, and its increase is 0.
    """
    increased = {}
    for counter, value in after.items():
        earlier = before.get(counter)
        if earlier is None:
            is_from_zero = counter.proxy in known or counter.place in is_new
            increased[counter] = value if is_from_zero else 0
        else:
            increased[counter] = value if value < earlier else value - earlier
    return increased


def _of_virtual_cluster(name: str, proxy: str) -> Counter | None:
    namespace, *rest = name.split("/", 2)
    if len(rest) != 2:
        return None
    route, client = rest
    try:
        named = bytes.fromhex(client[1:]).decode() if client.startswith("~") else ""
    except ValueError:
        return None
    return Counter(proxy, "", namespace, route, named or client.replace("/", "."))
