"""The facts of a team's deployments and of the fleet's nodes, for advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Max

from deployments.advice.domain import synthetic
from deployments.advice.domain.facts import (
    HOUR_MS,
    WEEK_HOURS,
    DeploymentFacts,
    Hour,
    NodeFacts,
    SpotPrice,
)
from deployments.manifests.selectors import rendering
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.preflight.services import cost, gpu_advice
from deployments.preflight.services.cost import SharesByCluster
from deployments.preflight.services.gpu_advice import Load
from deployments.registry.selectors import starts
from deployments.serving.selectors import synthetic_requests
from deployments.sizing.domain.ranking import Advice, Choice, RejectionReason
from deployments.sizing.selectors import measurements
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeState, DeploymentState, Environment
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.costs.selectors import hours
from fleet.costs.selectors.hours import ChargedHour, NodeHours
from fleet.gpus.domain import capacity_types
from fleet.gpus.domain import offers as gpu_offers
from fleet.gpus.domain.intervals import HOUR, hour_of
from portal.accounts.models import Team
from portal.core import clock
from portal.core.definitions import Rejected

WEEKS = 2
_RELATED = (
    "team",
    "cluster",
    "stable_revision__version__model__team",
    "stable_revision__deployment__cluster",
)
# Older charges say nothing about today.
_STALE = timedelta(days=1)
_OPTIONS = ("keda", "knative", "scale-to-zero")
# A budget that is too small for the new choice is too small for the one it replaces.
_ALLOWED = frozenset({RejectionReason.BUDGET})


def list_deployments(
    team: Team, *, deployment_id: int | None = None
) -> Iterator[tuple[Deployment, DeploymentFacts]]:
    """Yield facts of the team's ready deployments without a rollout, or of `deployment_id` only.

    The last hour of the facts is the last sealed one.
    """
    now = clock.now()
    end = hour_of(now)
    start = end - timedelta(weeks=WEEKS)
    rows = Deployment.objects.filter(
        team=team,
        state=DeploymentState.READY,
        is_stopped=False,
        is_retiring=False,
        is_retired=False,
        candidate_revision=None,
        stable_revision__isnull=False,
    ).select_related(*_RELATED)
    if deployment_id is not None:
        rows = rows.filter(pk=deployment_id)
    charged = hours.read_charged_hours(team_slug=team.slug, start=start, end=end)
    changed = _changed(team)
    sent = synthetic_requests.hours_of_team(team, start=start - HOUR)
    shares = SharesByCluster()
    elsewhere = _additional_models(team)
    infos = {cluster.id: cluster for cluster in clusters.list_clusters()}
    for deployment in rows:
        own = charged.get(deployment.name, [])
        since = max(start, changed.get(deployment.pk) or deployment.created_at)
        of_callers = synthetic.without(
            [(hour.start, hour.use.requests) for hour in own], sent.get(deployment.pk, {})
        )
        gpus = _whole_gpus(shares, deployment)
        known = [
            _hour(hour, requests, gpus)
            for hour, requests in zip(own, of_callers, strict=True)
            if hour.start >= since
        ]
        if known and known[-1].start > end - _STALE:
            cluster = infos[deployment.cluster_id]
            known_facts = _facts(deployment, known, since, cluster, shares)
            is_elsewhere = (
                cluster.id,
                deployment.environment,
                known_facts.model,
            ) in elsewhere
            yield deployment, replace(known_facts, is_served_elsewhere=is_elsewhere)


def list_nodes() -> Iterator[tuple[NodeHours, NodeFacts]]:
    end = hour_of(clock.now())
    for node in hours.list_nodes(start=end - timedelta(weeks=1) - HOUR, end=end):
        facts = NodeFacts(
            name=node.name,
            cluster=node.cluster_name,
            instance_type=node.instance_type,
            capacity_type=node.capacity_type,
            gpus=node.gpus,
            usd_per_hour_amount=node.usd_per_hour_amount,
            idle_hours=min(node.idle_hours, WEEK_HOURS),
            held_hours=node.held_hours,
            made_up_hours=min(node.made_up_hours, WEEK_HOURS),
        )
        yield node, facts


def stable_of(deployment: Deployment) -> Revision:
    if deployment.stable_revision is None:
        raise ValueError(f"{deployment} has no stable revision")
    return deployment.stable_revision


def spec_of(deployment: Deployment) -> ServingSpec:
    """Return the spec of the stable revision at its current scale."""
    return rendering.spec_of(stable_of(deployment))


def _facts(
    deployment: Deployment,
    known: Sequence[Hour],
    since: datetime,
    cluster: ClusterInfo,
    shares: SharesByCluster,
) -> DeploymentFacts:
    stable, spec = stable_of(deployment), spec_of(deployment)
    offered = shares.list_shares(cluster.id)
    share = cost.find_gpu_share(offered, spec)
    start = starts.typical_start_of(stable)
    advice = _advise(stable, spec, cluster, offered)
    return DeploymentFacts(
        name=str(deployment),
        spec=spec,
        is_production=deployment.environment == Environment.PRODUCTION,
        since=since,
        until=known[-1].start + HOUR,
        hours=known,
        replica_amount=share.usd_per_hour_amount if share else None,
        memory_mib=share.vram_mib // share.gpus if share else 0,
        cluster=cluster.name,
        environment=deployment.environment,
        model=stable.version.model.name,
        version=stable.version.number,
        max_batch_size=int(stable.version.signature.get("max_batch_size", 0)),
        need=advice.need if advice else None,
        file=measurements.describe_file(stable.version),
        choices=_possible(advice) if advice else (),
        spot=_spot(offered, spec),
        cold_start_seconds=start.seconds if start else None,
        starts=start.starts if start else 0,
        supports=_supports(cluster),
    )


def _advise(
    stable: Revision, spec: ServingSpec, cluster: ClusterInfo, offered: Sequence[GpuShare]
) -> Advice | None:
    load = Load(
        instances=spec.instances_per_gpu,
        max_replicas=spec.max_replicas,
        additional_models=spec.additional_models,
    )
    # Another accelerator needs other settings than a smaller one of the same kind.
    gpus = gpu_offers.drop_neuron(offered)
    same_placement = catalogue.filter_shares(gpus, spec.placement)
    try:
        return gpu_advice.advise_version(
            version=stable.version, cluster=cluster, load=load, shares=same_placement
        )
    except Rejected:
        return None  # A model of multi-model serving is gone: its memory is not known.


def _possible(advice: Advice) -> list[Choice]:
    return [
        choice
        for choice in (*advice.ranked, *advice.rejected)
        if all(refusal.reason in _ALLOWED for refusal in choice.refusals)
    ]


def _spot(offered: Sequence[GpuShare], spec: ServingSpec) -> SpotPrice | None:
    """Return the price of a replica on spot nodes.

    None if it is not known, or if the cluster has no spot nodes of the instance type and starts none.
    """
    placement = spec.placement.on(capacity_types.SPOT)
    share = cost.find_gpu_share(offered, spec.replace(placement=placement))
    if share is None or share.usd_per_hour_amount is None:
        return None
    if not share.nodes and not share.is_startable:
        return None
    return SpotPrice(usd_per_hour_amount=share.usd_per_hour_amount, source=share.price_source)


def _supports(cluster: ClusterInfo) -> dict[str, bool]:
    offers = {name: cluster.capabilities.offers(name).ok is True for name in _OPTIONS}
    return {**offers, "gateway-latency": cluster.has_prometheus}


def _changed(team: Team) -> dict[int, datetime]:
    """Return when each deployment last changed. Its use before then says nothing about what it is now."""
    rows = ChangeRequest.objects.filter(team=team, state=ChangeState.DONE)
    latest = rows.exclude(deployment=None).values_list("deployment").annotate(Max("finished_at"))
    return {pk: at for pk, at in latest.order_by() if at is not None}


def _additional_models(team: Team) -> set[tuple[int, str, str]]:
    """Return cluster, environment and model of all that is served beside another model, also by a candidate."""
    rows = Deployment.objects.filter(team=team, is_retired=False).values_list(
        "cluster_id",
        "environment",
        "stable_revision__spec__additional_models",
        "candidate_revision__spec__additional_models",
    )
    return {
        (cluster_id, environment, additional["model"])
        for cluster_id, environment, *lists in rows
        for listed in lists
        for additional in listed or ()
    }


def _whole_gpus(shares: SharesByCluster, deployment: Deployment) -> int:
    """Return the whole GPUs of one replica. 0 for a part of a GPU, and for replicas over several nodes."""
    spec = spec_of(deployment)
    share = cost.find_gpu_share(shares.list_shares(deployment.cluster_id), spec)
    is_whole = share is not None and share.sharing == "whole" and spec.nodes == 1
    return spec.gpus if is_whole else 0


def _hour(charged: ChargedHour, requests: int, gpus: int) -> Hour:
    use = charged.use
    return Hour(
        start=charged.start,
        cost_amount=charged.cost_amount,
        is_priced=charged.cost_amount > 0,
        requests=requests,
        observed_ms=use.observed_ms,
        busy_ms=use.busy_ms,
        served=use.served,
        queue_us=use.queue_us,
        compute_us=use.compute_us,
        inferences=use.inferences,
        executions=use.executions,
        held_ms=min(HOUR_MS, charged.gpu_ms // gpus) if gpus else HOUR_MS,
        is_made_up=charged.is_made_up,
    )
