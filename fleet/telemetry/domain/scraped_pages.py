"""Pages of model servers as Prometheus scraped them: one query for each family of servers, and from its series back to
the text that the pod itself would have answered, which the same readers parse.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fleet.clusters.domain.prometheus_series import Series
from fleet.telemetry.domain import metric_names, triton_metrics

# Namespace and name.
PodName = tuple[str, str]
FAMILIES: Final[Mapping[str, frozenset[str]]] = {
    "Triton": triton_metrics.SAMPLES,
    **{names.server: metric_names.sample_names(names) for names in metric_names.SERVERS},
}
# Has a scrape of each target that is scraped once a minute.
_WINDOW: Final = "2m"
_RENAMED: Final = "exported_"
# What distinguishes two scrapes of one pod. Labels of the engines are not among them.
_TARGET: Final = ("job", "instance", "container", "prometheus", "prometheus_replica", "replica")
_NOT_OF_PAGE: Final = frozenset((*_TARGET, "__name__", "namespace", "pod", "service", "node"))
_ESCAPED: Final = {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """A page that Prometheus scraped. `at` is the Unix time of the scrape."""

    at: float
    text: str


def queries(namespaces: Collection[str]) -> list[str]:
    """Return one query for each family. Of Triton's summaries only one quantile is read; others have no such label."""
    where = "|".join(map(_literal, sorted(namespaces)))
    quantile = f"|{_literal(triton_metrics.QUANTILE)}"
    return [
        f'{{__name__=~"{"|".join(sorted(samples))}",namespace=~"{where}",pod!="",'
        f'quantile=~"{quantile}"}}[{_WINDOW}]'
        for samples in FAMILIES.values()
    ]


def by_pod(
    series: Iterable[Series], pods: Collection[PodName]
) -> dict[PodName, tuple[ScrapedPage, ...]]:
    """Return the pages of these pods, by the labels that the scrape gave: a server's own labels may name another
    pod. The page that was scraped last is first; a pod has several if several jobs scrape it.
    """
    targets: dict[PodName, dict[tuple[str, ...], list[Series]]] = defaultdict(dict)
    for one in series:
        labels = one.labels
        pod = (labels.get("namespace", ""), labels.get("pod", ""))
        if pod in pods:
            target = tuple(labels.get(name, "") for name in _TARGET)
            targets[pod].setdefault(target, []).append(one)
    return {
        pod: tuple(sorted(map(_page, of_pod.values()), key=lambda page: -page.at))
        for pod, of_pod in targets.items()
    }


def _page(series: list[Series]) -> ScrapedPage:
    """Return the page of the last scrape. While the last has fewer series than the one before, return the one
    before: half of the last may not have arrived yet. Series that a server no longer exports are missing from
    the next scrape too.
    """
    last = max(one.values[-1][0] for one in series)
    earlier = [at for one in series for at, _ in one.values if at < last]
    if earlier:
        before = max(earlier)
        times = [at for one in series for at, _ in one.values]
        if times.count(last) < times.count(before):
            last = before
    # Of a series that two unknown labels tell apart, one.
    lines = dict(_lines(series, last))
    return ScrapedPage(last, "".join(f"{name} {value}\n" for name, value in lines.items()))


def _lines(series: Iterable[Series], at: float) -> Iterator[tuple[str, str]]:
    for one in series:
        for time, value in one.values:
            if time == at:
                yield _name(one.labels), value


def _name(labels: Mapping[str, str]) -> str:
    """Prometheus renames a server's label where the scrape has one of that name, as `endpoint` of SGLang."""
    own = {name: value for name, value in labels.items() if name not in _NOT_OF_PAGE}
    renamed = [name for name in own if name.startswith(_RENAMED)]
    for name in renamed:
        own[name.removeprefix(_RENAMED)] = own.pop(name)
    text = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in own.items())
    return f"{labels['__name__']}{{{text}}}"


def _literal(text: str) -> str:
    """Escape text as a regular expression inside double quotes of PromQL."""
    return re.sub(r"([.\\+*?()|\[\]{}^$])", r"\\\\\1", text)
