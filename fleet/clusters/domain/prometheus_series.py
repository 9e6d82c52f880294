"""Answers of Prometheus to range selectors: raw samples, each with the time of its scrape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleet.clusters.domain.prometheus import NotPrometheus, QueryRefused, read_data

# Of 10,000 pods with twenty series each.
MAX_SERIES: Final = 200_000
# In the year 2100, in Unix seconds.
_LATEST: Final = 4_102_444_800


@dataclass(frozen=True, slots=True)
class Series:
    """The raw samples of a series. `values` are Unix seconds and the number as Prometheus writes it, oldest first;
    never empty.
    """

    labels: Mapping[str, str]
    values: Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """The result of a range selector. `warnings` say that parts of the data may be missing."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


def parse(status: int, body: bytes) -> SeriesResult:
    """Parse a response. Raises a PrometheusError that describes any other one."""
    data, warnings = read_data(status, body)
    try:
        if data["resultType"] != "matrix":
            raise QueryRefused(f"the query gives a {data['resultType']}, not series")
        result = data["result"]
        if len(result) > MAX_SERIES:
            raise QueryRefused(f"the response has {len(result):,} series, more than {MAX_SERIES:,}")
        # Without values are series of native histograms alone.
        return SeriesResult(tuple(_series(item) for item in result if item.get("values")), warnings)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotPrometheus("the response does not follow the Prometheus API") from error


def _series(item: Any) -> Series:
    # Only two: a reading takes a whole scrape, the newest or the one before it.
    values = [(float(at), str(value)) for at, value in item["values"][-2:]]
    labels = item["metric"]
    is_text = all(isinstance(value, str) for value in labels.values())
    if not is_text or "__name__" not in labels or not all(0 < at < _LATEST for at, _ in values):
        raise ValueError
    return Series(labels, values)
