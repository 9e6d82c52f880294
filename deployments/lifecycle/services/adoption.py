"""Plan what a restored database would change on its clusters, and let it go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deployments.delivery.domain.reconcile import Desired, ObservedDeployment
from deployments.delivery.services.observe import observe
from deployments.delivery.services.reconcile_state import ReconcileState
from deployments.models import BatchJob, Deployment, LoadTestRun, Pipeline
from deployments.serving.selectors import revisions
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import namespaces
from portal.core import clock

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Effects:
    """The changes that the next passes would make for one deployment. All empty means none."""

    deployment: str
    created: Sequence[str] = ()
    changed: Sequence[str] = ()
    deleted: Sequence[str] = ()

    @property
    def description(self) -> str:
        parts = [
            f"{verb} {', '.join(names)}"
            for verb, names in (
                ("creates", self.created),
                ("changes", self.changed),
                ("deletes", self.deleted),
            )
            if names
        ]
        return f"{self.deployment}: {'; '.join(parts)}"

    @property
    def is_nothing(self) -> bool:
        return not (self.created or self.changed or self.deleted)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The changes to make on one cluster. `problem` says why it could not be read; empty if it was. `refused`
    are namespaces that stay another installation's, with the reason.
    """

    effects: Sequence[Effects]
    unchanged: int
    namespaces: Sequence[str]
    refused: Sequence[str]
    problem: str = ""


def plan_for(*, cluster_id: int) -> ClusterPlan:
    """Read the cluster and write nothing."""
    names = namespaces_of(cluster_id)
    try:
        refused = namespaces.list_refused(cluster_id=cluster_id, names=names)
        effects = [*_effects_on(cluster_id)]
    except ClusterError as error:
        return ClusterPlan((), 0, names, (), problem=error.message)
    acting = [item for item in effects if not item.is_nothing]
    return ClusterPlan(acting, len(effects) - len(acting), names, refused)


def namespaces_of(cluster_id: int) -> list[str]:
    """List all namespaces that rows say the portal wrote to."""
    names: set[str] = set()
    for model in (Deployment, Pipeline, LoadTestRun):
        rows = model._default_manager.filter(cluster=cluster_id)
        names |= set(rows.values_list("namespace", flat=True).distinct())
    jobs = BatchJob.objects.filter(cluster=cluster_id)
    return sorted(names | set(jobs.values_list("team__slug", flat=True).distinct()))


def _effects_on(cluster_id: int) -> Iterator[Effects]:
    rows = Deployment.objects.filter(cluster=cluster_id, is_retired=False)
    pks = list(rows.order_by("namespace", "name").values_list("pk", flat=True))
    for start in range(0, len(pks), _BATCH):
        some = list(
            Deployment.objects.select_related("team", "cluster")
            .filter(pk__in=pks[start : start + _BATCH])
            .order_by("namespace", "name")
        )
        revisions.load_onto(*some)
        observations = observe(some)
        for row in some:
            state = ReconcileState(row, is_direct=True)
            state.observe(observations[row.pk], clock.now())
            yield _effects_of(row, *state.compare())


def _effects_of(row: Deployment, desired: Desired, observed: ObservedDeployment) -> Effects:
    created, changed, deleted = [], [], []
    for number, digest in sorted(desired.digests.items()):
        if number not in observed.digests:
            created.append(f"r{number}")
        elif observed.digests[number] != digest or number in observed.drifted:
            changed.append(f"r{number}")
    deleted = [f"r{number}" for number in sorted(observed.digests.keys() - desired.digests.keys())]
    target = (desired.weights, desired.mirrors, desired.paths, desired.keys)
    live = (observed.weights, observed.mirrors, observed.paths, observed.keys)
    is_served = not (desired.is_retiring or desired.is_stopped)
    if observed.weights is None:
        created += ["its route"] if is_served and desired.weights else []
    elif not is_served:
        deleted.append("its route")
    elif target != live or observed.is_route_drifted:
        changed.append(f"its route ({_weights(observed.weights)} to {_weights(desired.weights)})")
    return Effects(f"{row.namespace}/{row.name}", created, changed, deleted)


def _weights(weights: object) -> str:
    shares = weights.items() if isinstance(weights, dict) else ()
    return ", ".join(f"{name} {share}%" for name, share in sorted(shares)) or "no traffic"
