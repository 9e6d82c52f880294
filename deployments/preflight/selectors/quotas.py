"""GPUs committed by a team: desired now, plus approved, plus those of batch jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db.models import Q

from deployments.manifests.selectors import baselines
from deployments.models import ChangeRequest, Deployment
from deployments.plans.selectors import plans
from deployments.preflight.selectors import batch_jobs
from deployments.spec.domain import replicas, serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeState
from fleet.gpus.domain import shares
from portal.accounts.models import Team
from portal.core import clock

_COUNTED = (ChangeState.APPROVED, ChangeState.APPLYING)
_ROLES = ("stable_revision", "candidate_revision", "baseline_revision")


@dataclass(frozen=True, slots=True)
class RunningRevision:
    """A stable, candidate or baseline revision of a deployment that is neither stopped nor retired."""

    revision_id: int
    deployment_id: int
    cluster_id: int
    spec: ServingSpec


def list_running(team: Team) -> list[RunningRevision]:
    """List every revision that the team's deployments run now, at its current scale."""
    live = Deployment.objects.filter(
        team=team, is_retired=False, is_retiring=False, is_stopped=False
    )
    columns = [(role, f"{role}__number", f"{role}__spec") for role in _ROLES]
    rows = live.order_by().values("pk", "cluster_id", "scale", *chain.from_iterable(columns))
    return [
        RunningRevision(
            row[role], row["pk"], row["cluster_id"], _scaled(row[number], row[spec], row["scale"])
        )
        for row in rows
        for role, number, spec in columns
        if row[role] is not None
    ]


@dataclass(frozen=True, slots=True)
class CommittedGpus:
    """The committed GPUs and Neuron devices together, and the resources that they are requested by."""

    gpus: int
    resources: frozenset[str]


def committed_gpus(
    team: Team,
    running: Sequence[RunningRevision],
    *,
    without_deployment_id: int | None = None,
    without_job_id: int | None = None,
) -> int:
    """Return the number of `committed` alone."""
    return sum_committed(
        team,
        running,
        without_deployment_id=without_deployment_id,
        without_job_id=without_job_id,
    ).gpus


def sum_committed(
    team: Team,
    running: Sequence[RunningRevision],
    *,
    without_change_id: int | None = None,
    without_deployment_id: int | None = None,
    without_job_id: int | None = None,
) -> CommittedGpus:
    """Sum the GPUs at full scale-out: what the team runs, batch jobs, and revisions of approved changes.

    A revision that an approved change scales counts at the larger of both sizes.
    """
    counted = [
        (revision.revision_id, revision.spec)
        for revision in running
        if revision.deployment_id != without_deployment_id
    ]
    gpus_by_revision: dict[int, int] = {}
    resources = set()
    for revision_id, spec in (*counted, *_approved(team, without_change_id)):
        gpus_by_revision[revision_id] = max(gpus_by_revision.get(revision_id, 0), spec.most_gpus)
        resources.add(spec.gpu_resource)
    baselines = list(_approved_baselines(team, without_change_id))
    resources |= {spec.gpu_resource for spec in baselines}
    of_jobs = batch_jobs.sum_held(team, at=clock.now(), without_job_id=without_job_id).gpus
    # Batch jobs take no Neuron devices.
    resources |= {shares.WHOLE} if of_jobs else set()
    of_baselines = sum(spec.most_gpus for spec in baselines)
    return CommittedGpus(
        sum(gpus_by_revision.values()) + of_baselines + of_jobs, frozenset(resources)
    )


def _approved(team: Team, without_change_id: int | None) -> Iterator[tuple[int, ServingSpec]]:
    rows = ChangeRequest.objects.filter(
        Q(state__in=_COUNTED), deployment__team=team, deployment__is_retiring=False
    ).exclude(revision=None)
    if without_change_id is not None:
        rows = rows.exclude(pk=without_change_id)
    for pk, number, spec, requested, current in rows.order_by().values_list(
        "revision", "revision__number", "revision__spec", "scale", "deployment__scale"
    ):
        yield pk, _scaled(number, spec, requested or current)


def _approved_baselines(team: Team, without_change_id: int | None) -> Iterator[ServingSpec]:
    """Yield the baselines of approved changes that do not exist yet."""
    rows = ChangeRequest.objects.filter(
        state__in=_COUNTED,
        plan__has_baseline=True,
        rollout__baseline_revision=None,
        deployment__team=team,
        deployment__is_retiring=False,
    )
    if without_change_id is not None:
        rows = rows.exclude(pk=without_change_id)
    for change in rows.order_by().select_related("revision", "deployment__stable_revision"):
        if change.revision is None or change.deployment is None:
            continue
        candidate = serving_spec.read_stored(change.revision.spec)
        spec = baselines.spec_of(change.deployment, plans.plan_of(change), candidate)
        if spec is not None:
            yield spec


def _scaled(number: int, spec: Mapping[str, Any], scale: Mapping[str, Any]) -> ServingSpec:
    return replicas.apply_scale(serving_spec.read_stored(spec), number=number, scale=scale)
