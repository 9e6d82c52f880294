"""The revision that a workload stood for at a time: a deployment and a retired one before it may have the same
name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from deployments.models import Revision
from fleet.telemetry.selectors.current import WorkloadKey
from fleet.telemetry.selectors.measured import Stood


def workload_of(revision: Revision) -> WorkloadKey:
    deployment = revision.deployment
    return WorkloadKey(deployment.cluster_id, deployment.namespace, revision.workload_name)


def times_of(revisions: Collection[Revision]) -> dict[int, Stood]:
    """Return the time in which a workload stood for each revision, by the revision's primary key. Its
    deployment must be selected with it.
    """
    made = _made(revisions) if revisions else {}
    times = {}
    for revision in revisions:
        key = workload_of(revision)
        of_key = made[key]
        is_first = of_key[0] >= revision.created_at
        later = [at for at in of_key if at > revision.created_at]
        times[revision.pk] = Stood(
            key,
            start=None if is_first else revision.created_at,
            end=later[0] if later else None,
        )
    return times


def _made(revisions: Collection[Revision]) -> dict[WorkloadKey, list[datetime]]:
    """Return when each revision with the name of one of these workloads was made, the first one first."""
    rows = (
        Revision.objects.filter(
            deployment__cluster_id__in={row.deployment.cluster_id for row in revisions},
            deployment__namespace__in={row.deployment.namespace for row in revisions},
            deployment__name__in={row.deployment.name for row in revisions},
        )
        .select_related("deployment")
        .only(
            *("number", "created_at"),
            *("deployment__cluster_id", "deployment__namespace", "deployment__name"),
        )
        .order_by("created_at")
    )
    made: dict[WorkloadKey, list[datetime]] = defaultdict(list)
    for row in rows:
        made[workload_of(row)].append(row.created_at)
    return made
