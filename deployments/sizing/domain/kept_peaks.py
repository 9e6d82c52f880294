"""Peaks of GPU memory that a retired deployment keeps in the column `Deployment.observed`, beside its revisions: its
workloads' names may be used again, and the row of a workload has one peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KEY: Final = "gpu_memory_peaks_mib"


def to_column(peaks: Mapping[int, int]) -> dict[str, Any]:
    """Return the entry of the column. `peaks` are in MiB by number of the revision, without those that were not
    measured.
    """
    return {_KEY: {f"r{number}": mib for number, mib in peaks.items()}} if peaks else {}


def peak_of(column: Mapping[str, Any], number: int) -> int | None:
    """Return the kept peak of a revision's GPU memory in MiB. None where none was kept."""
    peak: int | None = column.get(_KEY, {}).get(f"r{number}")
    return peak
