"""Have the requests of callers counted, in each cluster where a deployment has keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.db.models import Q, QuerySet

from deployments.callers.services import token_limits
from deployments.models import CallerKey
from fleet.telemetry.domain.counters import LONGEST_GAP
from fleet.telemetry.services import callers
from fleet.telemetry.services.callers import Client, CountedDeployment
from portal.core import clock
from portal.core.wakeups import wake

# The last requests of a key are read after it ended.
_AFTER_END: Final = timedelta(hours=1)


def sweep() -> None:
    """Queue a count for each cluster as a task of its own, so that one that does not answer delays no other."""
    for cluster_id in _keys().values_list("deployment__cluster", flat=True).distinct().order_by():
        wake("deployments.count_callers", cluster_id)


def count(*, cluster_id: int) -> None:
    """Count the requests and tokens of the cluster's callers. Makes network calls: run it outside transactions."""
    by_deployment: dict[int, list[CallerKey]] = {}
    # Open ones last: of two with one claim, the one that was renewed.
    rows = _keys().filter(deployment__cluster_id=cluster_id)
    for row in rows.select_related("consumer", "deployment__team").order_by("pk"):
        by_deployment.setdefault(row.deployment_id, []).append(row)
    if by_deployment:
        counted = callers.count(cluster_id=cluster_id, deployments=_deployments(by_deployment))
        token_limits.record(cluster_id=cluster_id, tokens=_by_key(counted, by_deployment))


def _by_key(
    counted: Mapping[Client, int], by_deployment: Mapping[int, Sequence[CallerKey]]
) -> dict[int, int]:
    pks = {
        (key.deployment.namespace, key.deployment.name, key.client): key.pk
        for keys in by_deployment.values()
        for key in keys
    }
    return {pks[client]: tokens for client, tokens in counted.items() if client in pks}


def _deployments(by_deployment: Mapping[int, Sequence[CallerKey]]) -> list[CountedDeployment]:
    since = clock.now() - LONGEST_GAP
    return [
        CountedDeployment(
            team_slug=keys[0].deployment.team.slug,
            namespace=keys[0].deployment.namespace,
            name=keys[0].deployment.name,
            callers={key.client: key.consumer.name for key in keys},
            new_clients=frozenset(key.client for key in keys if key.created_at > since),
        )
        for keys in by_deployment.values()
    ]


def _keys() -> QuerySet[CallerKey]:
    return CallerKey.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=clock.now() - _AFTER_END),
        deployment__is_retired=False,
    )
