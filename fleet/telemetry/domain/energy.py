"""Energy of GPUs by pod, from dcgm-exporter's series in Prometheus.

Every pod that holds a GPU, or a part of it, has a series with the values of the whole GPU. So each minute of a GPU is
split evenly among the series that it has in that minute: pods that share it never get it twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fleet.clusters.domain.prometheus import PrometheusSample

_COUNTER: Final = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_GAUGE: Final = "DCGM_FI_DEV_POWER_USAGE"
# In milliwatts: the counter is in millijoules, and survives resets by rate(); the gauge, in watts, where a GPU has no
# counter. What is negative or not a number is left out.
_POWER: Final = f"((rate({_COUNTER}[3m]) or on (UUID) {_GAUGE} * 1000) >= 0)"
_SHARING: Final = f"on (UUID) group_left () count by (UUID) ({_POWER})"
_BY: Final = "namespace, pod, exported_namespace, exported_pod"
# 60 points a minute apart, whether a range includes its start (Prometheus 2) or not (3).
_HOUR: Final = "[3599s:60s]"
_MINUTE_SECONDS: Final = 60
_MINUTE_MS: Final = 60_000
# No GPU takes 5 kW: more is a reading that lies.
_MOST_MJ_PER_MS: Final = 5_000
MJ_PER_KWH: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class PodEnergy:
    """The energy of a pod in an hour. `covered_ms` is the GPU time that was measured: an hour of half a GPU is
    1,800,000.
    """

    energy_mj: int
    covered_ms: int


def queries(hour_end: datetime) -> tuple[str, str]:
    """Return the queries of millijoules and minutes of GPU time of the hour before, by pod."""
    at = f"{_HOUR} @ {int(hour_end.timestamp())}"
    energy = f"sum by ({_BY}) (sum_over_time(({_POWER} / {_SHARING}){at})) * {_MINUTE_SECONDS}"
    covered = f"sum by ({_BY}) (sum_over_time((({_POWER} * 0 + 1) / {_SHARING}){at}))"
    return energy, covered


def by_pod(
    energy: Iterable[PrometheusSample], covered: Iterable[PrometheusSample]
) -> Mapping[tuple[str, str], PodEnergy]:
    """Return the energy of pods by namespace and name. A pod without both figures, or with impossible ones, is left
    out.
    """
    millijoules, minutes = _sums(energy), _sums(covered)
    energy_by_pod = {}
    for pod, amount in millijoules.items():
        covered_ms = round(minutes.get(pod, 0.0) * _MINUTE_MS)
        if covered_ms and amount <= covered_ms * _MOST_MJ_PER_MS:
            energy_by_pod[pod] = PodEnergy(round(amount), covered_ms)
    return energy_by_pod


def _sums(samples: Iterable[PrometheusSample]) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for sample in samples:
        pod = _pod_of(sample.labels)
        if all(pod) and math.isfinite(sample.value) and sample.value >= 0:
            sums[pod] = sums.get(pod, 0.0) + sample.value
    return sums


def _pod_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Prometheus renames the exporter's labels, unless its ServiceMonitor says honorLabels."""
    if labels.get("exported_pod"):
        return labels.get("exported_namespace", ""), labels["exported_pod"]
    return labels.get("namespace", ""), labels.get("pod", "")
