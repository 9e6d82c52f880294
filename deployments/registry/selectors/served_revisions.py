"""The newest revisions that serve a version, with the time in which each had its workload: what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployments.models import ModelVersion, Revision
from deployments.sizing.selectors import measurements, workload_times
from fleet.telemetry.selectors.measured import Stood

# Older ones say little about today's image and network.
_MOST = 200


@dataclass(frozen=True, slots=True)
class ServedRevisions:
    """The revisions that served, and when. `times` are by primary key of the revision."""

    revisions: Sequence[Revision]
    times: Mapping[int, Stood]


def read_served_revisions(version: ModelVersion) -> ServedRevisions:
    rows = Revision.objects.filter(version=version).select_related("deployment")
    revisions = list(rows.order_by("-id")[:_MOST])
    return ServedRevisions(revisions, workload_times.times_of(revisions))


def peak_mib(served: ServedRevisions) -> int | None:
    """Return the highest GPU memory that a revision used which served nothing else. None means not measured."""
    alone = [row for row in served.revisions if not row.spec.get("additional_models")]
    return max(measurements.peaks_of(alone, served.times).values(), default=None)
