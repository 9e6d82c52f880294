"""How long pods took to start on a node, beside the same revisions on other nodes of its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from django.db.models import QuerySet

from fleet.models import Node, Pod, Workload
from fleet.observation.domain import pod_start
from portal.accounts import policy
from portal.accounts.policy import Actor

# What the node itself contributes: a pod waits for a node before it has one.
STEPS: Final = tuple(step for step in pod_start.STEPS if step != pod_start.NODE)
# Older ones say little about today's image, model and network.
_LAST: Final = 20
_MOST_PODS: Final = 500


@dataclass(frozen=True, slots=True)
class Starts:
    """Medians of `count` starts, from a pod's node to its readiness. Steps need not add up to `seconds`."""

    count: int
    seconds: int
    steps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RevisionStarts:
    """One revision. `elsewhere` None: it never started on another node of the type in the cluster."""

    team_slug: str
    deployment: str
    workload_name: str
    here: Starts
    elsewhere: Starts | None


def starts_on(*, actor: Actor, node: Node) -> list[RevisionStarts]:
    """Return the revisions that started on the node, of the teams that the actor may see. The latest start comes
    first.
    """
    of_teams = Pod.objects.filter(workload__team__in=policy.visible_teams(actor))
    here = _by_workload(of_teams.filter(node=node))
    others = Pod.objects.filter(
        workload_id__in=here.keys(),
        node__cluster_id=node.cluster_id,
        node__instance_type=node.instance_type,
    ).exclude(node=node)
    elsewhere = _by_workload(others) if here else {}
    workloads = Workload.objects.select_related("team").in_bulk(here.keys())
    return [_row(workloads[pk], starts, elsewhere.get(pk, ())) for pk, starts in here.items()]


def _by_workload(pods: QuerySet[Pod]) -> dict[int, list[Mapping[str, int]]]:
    """Return the last starts of each workload, newest first, without pods that were restarted before."""
    rows = (
        pods.filter(ready_at__isnull=False)
        .exclude(start_seconds={})
        .order_by("-ready_at", "-pk")
        .values_list("workload_id", "start_seconds")
    )
    grouped: dict[int, list[Mapping[str, int]]] = defaultdict(list)
    for workload_id, seconds in rows[:_MOST_PODS]:
        if workload_id is not None and len(grouped[workload_id]) < _LAST:
            grouped[workload_id].append(seconds)
    return grouped


def _row(
    workload: Workload, here: Sequence[Mapping[str, int]], elsewhere: Sequence[Mapping[str, int]]
) -> RevisionStarts:
    return RevisionStarts(
        team_slug=workload.team.slug,
        deployment=str(workload.labels.get("deployment", "")),
        workload_name=workload.name,
        here=_medians(here),
        elsewhere=_medians(elsewhere) if elsewhere else None,
    )


def _medians(starts: Collection[Mapping[str, int]]) -> Starts:
    return Starts(
        count=len(starts),
        seconds=round(median(sum(start.get(step, 0) for step in STEPS) for start in starts)),
        steps={step: round(median(start.get(step, 0) for start in starts)) for step in STEPS},
    )
