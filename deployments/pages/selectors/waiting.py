"""Places in Kueue's queues, queued batch jobs and idle deployments, for the fleet page's table of waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.db.models import Q

from deployments.advice.domain.kinds import idle
from deployments.batch.domain.settings import BatchSettings
from deployments.models import AdviceItem, BatchJob, Deployment
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.domain.queue_state import QueueState
from deployments.states import AdviceState
from fleet.capacity.domain.waiting import QueuePlace, Waiter, WaiterKind
from fleet.capacity.services.wait_sources import IdleDeployment, WorkloadKey
from portal.core import clock

# It was idle for so long when the advice appeared.
_IDLE_BEFORE: Final = timedelta(days=7)


class DeploymentWaits:
    """The registered source of `fleet.capacity.services.wait_sources`."""

    def find_places(self, workloads: Collection[WorkloadKey]) -> Mapping[WorkloadKey, QueuePlace]:
        """Return the places as the reconciler observed them last, in one query."""
        numbers = {key: _split(key[2]) for key in workloads}
        named = Q(pk__in=[])
        for (cluster_id, namespace, _), (name, _) in numbers.items():
            named |= Q(cluster=cluster_id, namespace=namespace, name=name)
        rows = Deployment.objects.filter(named, is_retired=False).order_by()
        observed = {
            (cluster_id, namespace, name): column
            for cluster_id, namespace, name, column in rows.values_list(
                "cluster_id", "namespace", "name", "observed"
            )
        }
        places = {}
        for key, (name, number) in numbers.items():
            column = observed.get((key[0], key[1], name), {})
            queue = ObservedRevision.from_column(column, number).queue
            if queue is not None and queue.is_waiting:
                places[key] = _place(queue)
        return places

    def list_queued_jobs(self) -> Sequence[Waiter]:
        """List batch jobs whose workers Kueue has not admitted."""
        running = BatchJob.objects.filter(state="running", queue_state__isnull=False)
        return [
            waiter
            for job in running.select_related("team", "cluster").defer("files").order_by("id")
            if (waiter := _describe_job(job)) is not None
        ]

    def list_idle(self, clusters: Collection[int]) -> Sequence[IdleDeployment]:
        """List deployments with open advice to stop them."""
        items = AdviceItem.objects.filter(
            kind=idle.CODE,
            state=AdviceState.OPEN,
            deployment__cluster__in=clusters,
            deployment__is_stopped=False,
            deployment__is_retired=False,
        ).order_by()
        now = clock.now()
        return [
            IdleDeployment(cluster_id, team, name, (now - seen_at + _IDLE_BEFORE).days)
            for cluster_id, team, name, seen_at in items.values_list(
                "deployment__cluster_id",
                "deployment__team__slug",
                "deployment__name",
                "first_seen_at",
            )
        ]


def _split(workload_name: str) -> tuple[str, int]:
    """Return the deployment and the number of the revision. 0 if it is not the workload of a revision."""
    name, _, number = workload_name.rpartition("-r")
    return (name, int(number)) if number.isdigit() else (workload_name, 0)


def _describe_job(job: BatchJob) -> Waiter | None:
    state = QueueState.from_json(job.queue_state)
    if state is None:
        return None
    settings = BatchSettings.from_json(job.pods)
    return Waiter(
        kind=WaiterKind.BATCH_JOB,
        cluster_id=job.cluster_id,
        cluster_name=job.cluster.name,
        team_slug=job.team.slug,
        name=job.name,
        is_visible=True,
        resource=settings.gpu_resource,
        units=1,
        pods=state.waiting,
        since=job.started_at or job.decided_at or job.created_at,
        instance_types=(settings.instance_type,),
        place=_place(state),
    )


def _place(state: QueueState) -> QueuePlace:
    return QueuePlace(queue=state.queue, position=state.position, why=state.why)
